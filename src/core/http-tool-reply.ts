// What a tool's server says of a call: at once, at the end of a stream, or later. `{result}` or `{error}`, any JSON.

import { type DoneResult, done, failed } from "./tool.ts";

/** Nothing when it is neither. Text stays as it is, everything else becomes JSON. */
export function replyResult(reply: unknown): DoneResult | undefined {
  if (typeof reply !== "object" || reply === null || Array.isArray(reply)) return undefined;
  const result: unknown = Object.hasOwn(reply, "result") ? Reflect.get(reply, "result") : undefined;
  const error: unknown = Object.hasOwn(reply, "error") ? Reflect.get(reply, "error") : undefined;
  // An error that says nothing is how some languages write that there is none.
  const isFailure = error !== undefined && error !== null && error !== "" && error !== false;
  if (!isFailure && result === undefined) return undefined;
  const output = result === undefined ? "" : replyText(result);
  return isFailure ? failed(replyText(error), output) : done(output);
}

/** A value as the model reads it. */
export function replyText(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(nested too deeply to be shown)";
  }
}
