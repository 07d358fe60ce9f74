// What has become of a child: what it said itself with `task_complete`, else what can be told from how its run ended.

import { z } from "zod";
import type { ErrorShape } from "../../core/event.ts";
import { type Message, textOf } from "../../core/message.ts";
import type { RunStatus } from "../../core/records.ts";
import { firstChars } from "../../lib/cut.ts";
import type { Child } from "./children.ts";
import { asCompletion, CompletionFields } from "./completion.ts";

/** The slot of the child's state that holds what it said at last. */
export const COMPLETION = "completion";
const MAX_SUMMARY_CHARS = 2000;
const MAX_LIST_CHARS = 1000;

const Completion = CompletionFields.extend({ run_id: z.string() });

/** What the child of this state has reported, also in the shape that earlier versions stored. */
export function completionIn(state: Readonly<Record<string, unknown>>) {
  const kept = z.record(z.string(), z.unknown()).safeParse(state[COMPLETION]).data;
  return kept && Completion.safeParse(asCompletion(kept)).data;
}

export interface Report extends Omit<CompletionFields, "status"> {
  readonly status: "completed" | "failed" | "cancelled";
}

/** How a run ended. */
export interface Ending {
  readonly status: RunStatus;
  readonly stop_reason?: string | undefined;
  readonly error?: z.infer<typeof ErrorShape> | undefined;
}

export interface ChildThread {
  readonly messages: readonly Message[];
  readonly state: Readonly<Record<string, unknown>>;
}

export const STOPPED = "Stopped before it had finished.";
export const CANCELLED: Report = { status: "cancelled", summary: "Cancelled." };

/** Of a run that has ended and waits for nobody. */
export function reportOn(ending: Ending, runId: string, { messages, state }: ChildThread): Report {
  const completion = completionIn(state);
  if (completion && completion.run_id === runId) {
    const { run_id: _, ...report } = completion;
    return report;
  }
  const said = lastWords(messages);
  switch (ending.status) {
    case "success":
      return { status: "completed", summary: said || "It ended without a word." };
    case "cancelled":
      return CANCELLED;
    case "interrupted":
      return { status: "cancelled", summary: sentences(STOPPED, said) };
    default: {
      const { error, stop_reason = "error" } = ending;
      const why = error ? `${error.message} (${error.code})` : `It ended at its limit (${stop_reason}).`;
      return { status: "failed", summary: sentences(why, said) };
    }
  }
}

const sentences = (why: string, said: string) => (said ? `${why} It said last: ${said}` : why);

function lastWords(messages: readonly Message[]): string {
  const last = messages.findLast(({ role, content }) => role === "assistant" && textOf(content).trim());
  return last ? textOf(last.content).trim() : "";
}

/** One child, for its parent's model. */
export function tell({ name, agent }: Pick<Child, "name" | "agent">, report: Report): string {
  const { status, summary, files_modified = [], tests_run = [], caveats } = report;
  const extras = [
    ["Files modified", files_modified.join(", ")],
    ["Tests run", tests_run.join("; ")],
    ["Caveats", caveats],
  ].flatMap(([what, text]) => (text ? [`${what}: ${cut(text, MAX_LIST_CHARS)}`] : []));
  return [`[${name}] agent ${agent}: ${status}`, cut(summary, MAX_SUMMARY_CHARS), ...extras].join("\n");
}

export function cut(text: string, length: number): string {
  if (text.length <= length) return text;
  return `${firstChars(text, length)}\n[${text.length - length} more characters are left out.]`;
}
