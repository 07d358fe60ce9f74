// The question to the person who approves a call.

import { firstChars } from "../../../lib/text.ts";
import type { Answer } from "../../../protocol/interrupt.ts";
import type { ToolRequest } from "../../core/hook.ts";
import { askFor } from "../../core/open-interrupts.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import type { Verdict } from "./policy.ts";
import { rememberOptions } from "./rule-options.ts";
import { subjectOf } from "./subject.ts";

/** The maximum number of characters in the call's description in a question. */
const MAX_WHAT_CHARS = 1000;

/**
 * Asks a person about a call. With `isHeld`, a flow rule asks. It asks every time, so no answer can be
 * remembered.
 */
export function ask(
  request: ToolRequest,
  { message, why, isHeld }: Pick<Verdict, "message" | "why"> & { readonly isHeld?: boolean | undefined },
  run: Run,
  workdir?: string,
): Stream<Answer | undefined> {
  const { call, tool } = request;
  return askFor(
    {
      ...{ call, kind: "approval", options: ["approve", "deny", "edit", "respond"] },
      prompt: message ?? `May the agent ${whatOf(request)}? (${why})`,
      rememberOptions: isHeld ? [] : rememberOptions(subjectOf(call, tool, workdir)),
    },
    run,
  );
}

/** True if the call can run. A call that would fail before it does anything needs no approval. */
export function isRunnable({ call, tool }: ToolRequest): boolean {
  return tool !== undefined && call.malformed === undefined && "args" in tool.parse(call.args);
}

/** Describes the call to the person who approves it. */
function whatOf({ call, tool }: ToolRequest): string {
  const parsed = tool?.parse(call.args);
  const told = parsed && "args" in parsed && tool?.describeCall?.(parsed.args);
  const what = told || `call \`${call.name}\` with ${JSON.stringify(call.args)}`;
  if (what.length <= MAX_WHAT_CHARS) return what;
  return `${firstChars(what, MAX_WHAT_CHARS)}… (${what.length - MAX_WHAT_CHARS} more characters: see its arguments)`;
}

/** Returns the text that explains to the model why its call is denied. */
export function refusal({ call }: ToolRequest, { why }: Pick<Verdict, "why">): string {
  return `Permission denied for \`${call.name}\`: ${why}. Do not try to achieve the same in another way.`;
}
