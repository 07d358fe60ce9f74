// Handles the result of a child, which is its report from `task_complete` or a report derived from the end of its run. The
// result is stored with the parent's thread, the task board and the reflections, and formatted for the parent's model.

import { z } from "zod";
import { firstChars, xmlTag } from "../../../lib/text.ts";
import type { ErrorShape } from "../../../protocol/event.ts";
import { AppError, hasCode } from "../../core/errors.ts";
import { textOf } from "../../core/message.ts";
import type { SystemBlock } from "../../core/model.ts";
import type { RunStatus } from "../../core/records.ts";
import { reportFailure, rootOf, setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { defineTool, type Run, type Tool } from "../../core/tool.ts";
import { type Child, type ChildThread, cut, readInChild, saveChildren } from "./child.ts";
import type { SubagentConfig } from "./subagent-config.ts";

/** The key in the child's state under which the child's report is stored. */
const STATE_KEY = "completion";
const MAX_SUMMARY_CHARS = 2000;
const MAX_STORED_SUMMARY_CHARS = 500;
const MAX_LIST_CHARS = 1000;
const MAX_ENTRIES = 100;
const MAX_ENTRY_CHARS = 500;

const texts = z.array(z.string());
const CompletionFields = z.object({
  status: z.enum(["completed", "failed"]),
  summary: z
    .string()
    .min(1)
    .describe("The work done, the findings and decisions, or the reason for the failure."),
  files_modified: texts.optional().describe("Paths of the changed files."),
  tests_run: texts.optional().describe("The tests that you ran, with their outcomes."),
  caveats: z.string().optional().describe("Information for the agent that continues the work."),
});
type CompletionFields = z.infer<typeof CompletionFields>;
const Completion = CompletionFields.extend({ run_id: z.string() });

export interface Report extends Omit<CompletionFields, "status"> {
  readonly status: "completed" | "failed" | "cancelled";
}

/** How a run ended. */
export interface ChildEnding {
  readonly status: RunStatus;
  readonly stop_reason?: string | undefined;
  readonly error?: z.infer<typeof ErrorShape> | undefined;
}

export const STOPPED = "Stopped before it had finished.";
export const CANCELLED: Report = { status: "cancelled", summary: "Cancelled." };

/** Returns the report of a run that has ended. */
export function reportFor(ending: ChildEnding, runId: string, { messages, state }: ChildThread): Report {
  const completion = completionIn(state);
  if (completion && completion.run_id === runId) {
    const { run_id: _, ...report } = completion;
    return report;
  }
  const last = messages.findLast(({ role, content }) => role === "assistant" && textOf(content).trim());
  const said = last ? textOf(last.content).trim() : "";
  const withWords = (why: string) => (said ? `${why} Its last message: ${said}` : why);
  switch (ending.status) {
    case "success":
      return { status: "completed", summary: said || "It ended without a message." };
    case "cancelled":
      return CANCELLED;
    case "interrupted":
      return { status: "cancelled", summary: withWords(STOPPED) };
    default: {
      const { error, stop_reason = "error" } = ending;
      const why = error ? whyFailed(error) : `It ended at its limit (${stop_reason}).`;
      return { status: "failed", summary: withWords(why) };
    }
  }
}

/**
 * Explains a failure. Omits the details of the server's internal failures, because a model does not need
 * them.
 */
const whyFailed = ({ code, message }: NonNullable<ChildEnding["error"]>) =>
  code === "unavailable" ? "The server failed while it worked." : `${message} (${code})`;

/** Returns the report of a child whose ending was recorded before. */
export async function storedReport({ subagents }: SubagentConfig, child: Child, run: Run): Promise<Report> {
  const { status, summary = "", run_id = "" } = child;
  const stored: Report =
    status === "completed" || status === "failed" ? { status, summary } : { ...CANCELLED, summary };
  const thread = await subagents.thread(run.owner, child.thread_id);
  if (thread.messages.length === 0) return stored;
  const report = reportFor({ status: "success" }, run_id, thread);
  return report.status === status ? report : stored;
}

interface ChildResult {
  readonly child: Child;
  readonly report: Report;
  /** If unset, the child's readings are looked up when they are needed. */
  readonly thread?: ChildThread;
}

/**
 * Stores a child's ending with the thread, the task board and the reflections. Returns the child in its
 * stored form.
 */
export async function* recordResult(
  config: SubagentConfig,
  { child, report: { status, summary }, thread }: ChildResult,
  run: Run,
): Stream<Child> {
  const { owner } = run;
  // A child that never started has not claimed its task.
  const { items, tasks } = child.run_id === undefined ? {} : config;
  if (tasks && child.task_id !== undefined) {
    const claimed = { owner, root: rootOf(run), id: child.task_id };
    const outcome = status === "cancelled" ? "canceled" : status;
    await tasks.settle(claimed, child.name, outcome).catch((error: unknown) => {
      ignoreRefusal(error);
      // Only a board from a plugin or program throws such an error.
      if (error instanceof AppError && error.cause)
        reportFailure(run, { what: "hook", error, hook: "subagents" });
    });
  }
  if (items && status === "failed" && config.agent.hooks.reflections) {
    const place = { owner, agent: child.agent };
    const { recordFailure } = await import("../extra/reflections.ts");
    await recordFailure(items, place, { task: child.task, summary }).catch(ignoreRefusal);
  }
  const settled: Child = {
    ...child,
    status,
    summary: cut(summary, MAX_STORED_SUMMARY_CHARS),
    ...(thread ? { read: readInChild(thread) } : {}),
  };
  yield* saveChildren(run, [settled]);
  return settled;
}

/**
 * Ignores a failure to store the result on the board or as a reflection, because such a failure does not
 * change the result.
 */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof AppError) || hasCode(error, "lease_lost")) throw error;
}

/** Formats a report for the parent's model. */
export function formatReport({ name, agent }: Pick<Child, "name" | "agent">, report: Report): string {
  const { status, summary, files_modified = [], tests_run = [], caveats } = report;
  const extras = [
    ["Files modified", files_modified.join(", ")],
    ["Tests run", tests_run.join("; ")],
    ["Caveats", caveats],
  ].flatMap(([what, text]) => (text ? [`${what}: ${cut(text, MAX_LIST_CHARS)}`] : []));
  return [`[${name}] agent ${agent}: ${status}`, cut(summary, MAX_SUMMARY_CHARS), ...extras].join("\n");
}

const reporting = defineTool({
  name: "task_complete",
  description:
    "Ends your work and reports it to the agent that gave you the task. Call it once, when you have finished or cannot continue.",
  parameters: CompletionFields,
  annotations: { idempotent: true, category: "plan", requiresPermission: false },
  async *execute(report, _, run) {
    // Only the first report counts.
    if (completionIn(Object.fromEntries(run.state))?.run_id !== run.id)
      yield* setState(run, STATE_KEY, { ...report, run_id: run.id });
    return { status: "done", output: "Reported.", endsRun: true };
  },
});

/** The tool with which a child reports its result. Calling it ends the child's run. */
export const taskComplete: Tool = { ...reporting, parse: (args) => reporting.parse(asCompletion(args)) };

export const completionProtocol: SystemBlock = {
  id: "completion_protocol",
  text: xmlTag(
    "completion_protocol",
    `Another agent has given you a task. No one else reads what you write.
- Work until the task is done or cannot be done, and then call task_complete once.
- Report truthfully, and use the status failed if the task was not done. The other agent sees only your summary.`,
  ),
  cache: "static",
};

/** Returns the report in a child's state. */
const completionIn = (state: Readonly<Record<string, unknown>>) =>
  Completion.safeParse(state[STATE_KEY]).data;

const STATUS: Readonly<Record<string, CompletionFields["status"]>> = {
  complete: "completed",
  success: "completed",
  succeeded: "completed",
  done: "completed",
  failure: "failed",
  error: "failed",
  incomplete: "failed",
};

/**
 * Accepts text instead of a list, and a list instead of text, so no report is lost because of its format.
 * Cuts long lists.
 */
function asCompletion(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { status, summary, files_modified, tests_run, caveats, ...others } = args;
  const lists = {
    files_modified: listOf(files_modified),
    tests_run: listOf(tests_run),
    caveats: asText(caveats),
  };
  const word = typeof status === "string" ? status.trim().toLowerCase() : undefined;
  return {
    ...others,
    status: word === undefined ? status : (STATUS[word] ?? word),
    ...((summary ?? undefined) === undefined ? {} : { summary: asText(summary) }),
    ...Object.fromEntries(Object.entries(lists).filter(([, value]) => value.length > 0)),
  };
}

function listOf(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list
    .map(asText)
    .filter((text) => text !== "")
    .slice(0, MAX_ENTRIES)
    .map((text) => firstChars(text, MAX_ENTRY_CHARS));
}

function asText(value: unknown): string {
  if ((value ?? undefined) === undefined) return "";
  if (Array.isArray(value)) return value.map(asText).filter(Boolean).join("\n");
  return (typeof value === "string" ? value : JSON.stringify(value)).trim();
}
