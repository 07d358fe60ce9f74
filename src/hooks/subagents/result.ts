// What has become of a child: what it said itself with `task_complete`, else what can be told from how its run ended.

import { z } from "zod";
import { AppError, hasCode } from "../../core/errors.ts";
import type { ErrorShape } from "../../core/event.ts";
import { type Message, textOf } from "../../core/message.ts";
import type { SystemBlock } from "../../core/model.ts";
import type { RunStatus } from "../../core/records.ts";
import { rootOf, setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { defineTool, type Run, type Tool } from "../../core/tool.ts";
import { firstChars, xmlTag } from "../../lib/text.ts";
import { recordFailure } from "../reflections.ts";
import { settleTask } from "../tasks.ts";
import { type Child, cut, keepChildren } from "./child.ts";
import type { Team } from "./subagent-config.ts";
/** The slot of the child's state that holds what it said at last. */
export const COMPLETION = "completion";
const MAX_SUMMARY_CHARS = 2000;
const MAX_LIST_CHARS = 1000;

const texts = z.array(z.string());

export const CompletionFields = z.object({
  status: z.enum(["completed", "failed"]),
  summary: z.string().min(1).describe("What was done, found or decided; or why it could not be."),
  files_modified: texts.optional().describe("Their paths."),
  tests_run: texts.optional().describe("Which tests were run, and how each ended."),
  caveats: z.string().optional().describe("What the agent that continues the work must know."),
});
export type CompletionFields = z.infer<typeof CompletionFields>;

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

// What a child reports with `task_complete`: the shape that the model is asked for, and other shapes that are accepted.
const MAX_ENTRIES = 100;
const MAX_ENTRY_CHARS = 500;

const STATUS: Readonly<Record<string, CompletionFields["status"]>> = {
  ...{ complete: "completed", success: "completed", succeeded: "completed", done: "completed" },
  ...{ failure: "failed", error: "failed", incomplete: "failed" },
};

/**
 * Accepts a text where a list is expected and the reverse, so that no report is lost because of its shape. Long lists are
 * cut.
 */
export function asCompletion(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { status, summary, files_modified, tests_run, caveats, ...others } = args;
  const optional = {
    files_modified: listOf(files_modified),
    tests_run: listOf(tests_run),
    caveats: asText(caveats),
  };
  const filled = Object.entries(optional).filter(([, value]) => value.length > 0);
  return {
    ...others,
    status:
      typeof status === "string"
        ? (STATUS[status.trim().toLowerCase()] ?? status.trim().toLowerCase())
        : status,
    ...(isNothing(summary) ? {} : { summary: asText(summary) }),
    ...Object.fromEntries(filled),
  };
}

const isNothing = (value: unknown) => value === undefined || value === null;

function listOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list
    .map(asText)
    .filter((text) => text !== "")
    .slice(0, MAX_ENTRIES)
    .map((text) => firstChars(text, MAX_ENTRY_CHARS));
}

function asText(value: unknown): string {
  if (isNothing(value)) return "";
  if (Array.isArray(value)) return value.map(asText).filter(Boolean).join("\n");
  return (typeof value === "string" ? value : JSON.stringify(value)).trim();
}

// How a child says what has become of its task. Its run ends with that.
const reporting = defineTool({
  name: "task_complete",
  description:
    "Ends your work and reports it to the agent that gave you the task. Call it once, when you have finished or cannot go on.",
  parameters: CompletionFields,
  annotations: { idempotent: true, category: "plan", requiresPermission: false },
  async *execute(report, _, run) {
    if (!isComplete(run)) yield* setState(run, COMPLETION, { ...report, run_id: run.id });
    return { status: "done", output: "Reported.", endsRun: true };
  },
});

export const taskComplete: Tool = { ...reporting, parse: (args) => reporting.parse(asCompletion(args)) };

/** The first report counts. */
const isComplete = (run: Run) => completionIn(Object.fromEntries(run.state))?.run_id === run.id;

export const completionProtocol: SystemBlock = {
  id: "completion_protocol",
  text: xmlTag(
    "completion_protocol",
    `Another agent has given you a task; nobody else reads what you write.
- Work on it until it is done or cannot be done, then call task_complete, once.
- Report truthfully: status failed when the task was not done. The summary is all that the other agent learns.`,
  ),
  cache: "static",
};

// What has become of a child, written down wherever that is of interest, and read back.
const MAX_STORED_SUMMARY_CHARS = 500;

/** Returns the child as it is written down. */
export async function* settle(
  team: Team,
  { child, report }: { child: Child; report: Report },
  run: Run,
): Stream<Child> {
  const { owner } = run;
  const { status, summary } = report;
  // One that never began was not at it.
  const items = child.run_id === undefined ? undefined : team.items;
  const becomes = status === "cancelled" ? "canceled" : status;
  if (items && child.task_id !== undefined)
    await settleTask(
      items,
      { owner, root: rootOf(run) },
      { id: child.task_id, status: becomes, by: child.name },
    ).catch(ignoreRefusal);
  if (items && status === "failed" && team.agent.hooks.reflections)
    await recordFailure(items, { owner, agent: child.agent }, { task: child.task, summary }).catch(
      ignoreRefusal,
    );
  const settled = { ...child, status, summary: cut(summary, MAX_STORED_SUMMARY_CHARS) };
  yield* keepChildren(run, [settled]);
  return settled;
}

/** What can be written down nowhere does not change what was done. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof AppError) || hasCode(error, "lease_lost")) throw error;
}

/** Of a child whose end was written down before. */
export async function remembered({ subagents }: Team, child: Child, run: Run): Promise<Report> {
  const { status, summary = "", run_id = "" } = child;
  const known: Report =
    status === "completed" || status === "failed" ? { status, summary } : { ...CANCELLED, summary };
  const thread = await subagents.thread(run.owner, child.thread_id);
  if (thread.messages.length === 0) return known;
  const told = reportOn({ status: "success" }, run_id, thread);
  return told.status === status ? told : known;
}
