// The events of one tool call in one run: it runs, it waits, or it is answered and runs.

import type { ToolCall } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import type { Answer, Interrupt, InterruptKind } from "../../../src/protocol/interrupt.ts";
import { type ChildPhase, childEvents } from "./children.ts";
import { AT, RUN, resultOf } from "./events.ts";
import type { CallValue, DecisionValue } from "./story.ts";

/** A call without its result. */
export interface OpenCall {
  readonly call: ToolCall;
  readonly spec: CallValue;
}

type Kept = Interrupt & { readonly answer?: Answer };

/** The thread's interrupts, as the events have them, and what the current run has brought. */
export function bookOf() {
  const kept = new Map<string, Kept>();
  let run = RUN;
  let answered: readonly string[] = [];
  let decision: DecisionValue | undefined;
  return {
    see({ event, path, data }: StreamEvent): void {
      if (path || event !== "on_state" || data.key !== "interrupts") return;
      for (const [id, value] of Object.entries(data.patch ?? {}))
        if (value === null) kept.delete(id);
        else kept.set(id, value as Kept);
    },
    begin(next: RunRecord, waiting: readonly OpenCall[], brought: DecisionValue | undefined): void {
      [run, decision] = [next, brought];
      const ids = waiting.map(({ call }) => call.id);
      answered = brought?.isForAll ? ids : ids.slice(0, 1);
    },
    kept: (id: string) => kept.get(id),
    runId: () => run.id,
    decisionOf: ({ id }: ToolCall) => (answered.includes(id) ? decision : undefined),
    asks: () => kept.size > 0,
    closed: (callIds: readonly string[]) =>
      closing([...kept.values()].filter(({ call_id }) => callIds.includes(call_id)).map(({ id }) => id)),
  };
}
export type Book = ReturnType<typeof bookOf>;

const patched = (patch: Record<string, unknown>): StreamEvent => ({
  event: "on_state",
  data: { key: "interrupts", patch },
});
const closing = (ids: readonly string[]): StreamEvent[] =>
  ids.length === 0 ? [] : [patched(Object.fromEntries(ids.map((id) => [id, null])))];

const NOT_RUN = "Not run: the agent continued without it.";

export function callEvents({ call, spec }: OpenCall, book: Book): StreamEvent[] {
  if (spec.outcome === "unstarted") return [resultOf(call, NOT_RUN, NOT_RUN)];
  const { waits } = spec;
  if (spec.outcome === "malformed")
    return [started(call), ...ended(call, "The arguments are cut off.", "The arguments are cut off.")];
  if (waits === undefined) return [started(call), ...ran(call, spec, "whole")];
  if (waits === "deferred")
    return book.decisionOf(call)
      ? [started(call), ...ended(call, "out", spec.outcome === "error" ? "out" : undefined)]
      : [started(call), paused(call)];
  return asking({ call, spec }, waits, book);
}

const started = ({ id: call_id, name, args }: ToolCall): StreamEvent => ({
  ...{ event: "on_tool_start", name },
  data: { call_id, args },
});
const paused = ({ id: call_id, name }: ToolCall): StreamEvent => ({
  ...{ event: "on_tool_end", name },
  data: { call_id, interrupted: true, duration_ms: 1 },
});
function ended(call: ToolCall, output: string, error?: string): StreamEvent[] {
  const data = { call_id: call.id, duration_ms: 1, output, ...(error === undefined ? {} : { error }) };
  return [{ event: "on_tool_end", name: call.name, data }, resultOf(call, output, error)];
}

/** What a call does, to its result. */
function ran(call: ToolCall, spec: CallValue, phase: ChildPhase): StreamEvent[] {
  const { name, id: call_id } = call;
  const isChild = name === "task" || spec.waits === "child";
  return [
    ...spec.progress.map(
      (output): StreamEvent => ({ event: "on_tool_progress", name, data: { call_id, output } }),
    ),
    ...spec.changes.map((data): StreamEvent => ({ event: "on_state", data })),
    ...(isChild ? childEvents(call_id, spec.child, phase) : []),
    ...ended(call, "out", spec.outcome === "error" ? "It failed." : undefined),
  ];
}

/** A call that asks, or that has an answer. */
function asking({ call, spec }: OpenCall, waits: InterruptKind | "child", book: Book): StreamEvent[] {
  const asked = questionOf(call, waits, book.runId());
  const known = book.kept(asked.id);
  const brought = known && known.run_id !== book.runId() ? book.decisionOf(call) : undefined;
  const answer = known?.answer ?? (brought && answerTo(asked, brought));
  if (!answer)
    return [
      started(call),
      ...(waits === "child" && !known ? childEvents(call.id, spec.child, "asks") : []),
      { event: "on_interrupt", data: known ?? asked },
      ...(known ? [] : [patched({ [asked.id]: asked })]),
      paused(call),
    ];
  const { answer: _, ...question }: Kept = known ?? asked;
  const edited = answer.decision === "edit" ? { ...call, args: answer.args ?? {} } : call;
  const { id, name } = asked;
  return [
    started(edited),
    ...(known?.answer
      ? []
      : [
          { event: "on_resume" as const, data: { id, name, decision: answer.decision } },
          patched({ [id]: { ...question, answer } }),
        ]),
    ...outcomeOf({ call: edited, spec }, waits, answer),
    ...closing([id]),
  ];
}

function outcomeOf({ call, spec }: OpenCall, waits: InterruptKind | "child", answer: Answer): StreamEvent[] {
  const { decision, message = "" } = answer;
  if (waits === "child") return ran(call, spec, "continues");
  if (decision === "respond") return ended(call, message);
  if (decision === "deny") return ended(call, message, waits === "question" ? undefined : message);
  return ran(call, spec, "whole");
}

function questionOf({ id: call_id, name, args }: ToolCall, waits: InterruptKind | "child", run_id: string) {
  const kind: InterruptKind = waits === "child" ? "approval" : waits;
  const question: Interrupt = {
    ...{ id: `${kind}_${call_id}`, kind, call_id, run_id, name, args, prompt: "May it?", created_at: AT },
    ...(kind === "question" ? { options: ["yes", "no"] } : {}),
  };
  if (waits !== "child") return question;
  const inner = { agent: "helper", name: "helper-1", thread_id: `${call_id}_thread`, id: "approval_inner" };
  return { ...question, id: `${inner.thread_id}:${inner.id}`, name: "execute", asked_by: inner };
}

/** A decision as this kind of question takes it. */
function answerTo({ id, kind, asked_by }: Interrupt, { decision, words }: DecisionValue): Answer {
  if (kind === "approval" && decision === "edit") return { id, decision, args: { edited: words } };
  if (kind === "approval" && decision === "approve") return { id, decision };
  if (decision === "deny") return { id, decision, message: words };
  return asked_by ? { id, decision: "approve" } : { id, decision: "respond", message: words };
}
