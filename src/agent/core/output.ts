// Structured output, where a run's final answer is JSON that matches a schema. This file validates the answer for
// every provider.

import { isNestedDeeper, isObject } from "../../lib/json.ts";
import { xmlTag } from "../../lib/text.ts";
import type { JsonSchema, SchemaCheck } from "../../lib/untrusted-schema/index.ts";
import { AppError } from "./errors.ts";
import { type UserMessage, userMessage } from "./message.ts";
import type { StopReason } from "./model.ts";

export interface OutputFormat {
  /** The schema of an object. */
  readonly schema: JsonSchema;
  readonly check: SchemaCheck;
}

export type Output = Record<string, unknown>;

/** The maximum number of corrections that the model may attempt before the run fails. */
export const MAX_CORRECTIONS = 2;

const MAX_CHARS = 256 * 1024;
const MAX_DEPTH = 64;
const MAX_SHOWN_SCHEMA = 16 * 1024;

/** Parses the text of an answer. Returns the output, or the faults of the answer. */
export function readOutput(
  { check }: OutputFormat,
  text: string,
  stop: StopReason,
): { readonly output: Output } | { readonly faults: readonly string[] } {
  if (stop === "max_tokens")
    return { faults: ["It was cut off at the token limit. Write a shorter answer."] };
  if (text.length > MAX_CHARS)
    return { faults: [`It has ${text.length} characters; at most ${MAX_CHARS} fit.`] };
  const value = readJson(text);
  if (value === undefined) return { faults: ["It is not a single JSON object."] };
  const faults = check(value);
  return faults.length > 0 ? { faults } : { output: value };
}

/** Parses the JSON object of an answer, inside a code fence if the model added one. */
export function readJson(text: string): Output | undefined {
  const [, inner = text] = /^\s*```(?:json)?\s*\n([\s\S]*?)\n\s*```\s*$/.exec(text) ?? [];
  try {
    const value: unknown = JSON.parse(inner);
    return isObject(value) && !isNestedDeeper(value, MAX_DEPTH) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a message that lists the faults of the model's answer. */
export function correction({ schema }: OutputFormat, faults: readonly string[]): UserMessage {
  const shown = JSON.stringify(schema);
  return userMessage(
    [
      "Your answer does not have the required format:",
      ...faults.map((fault) => `- ${fault}`),
      "Answer again with the complete JSON object and nothing else.",
      ...(shown.length > MAX_SHOWN_SCHEMA ? [] : [xmlTag("json_schema", shown)]),
    ].join("\n"),
  );
}

export function outputInvalid(faults: readonly string[]): AppError {
  return new AppError(
    "output_invalid",
    `The agent's answer does not fit \`output_schema\`: ${faults.join(" ")}`,
    { details: { faults: [...faults] } },
  );
}
