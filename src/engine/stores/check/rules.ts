// Rules that find contradictions in a store. Each rule is a pure function that holds for every store at any time.

import { hasResult } from "../../../agent/core/deferred-calls.ts";
import { isSettled } from "../../../agent/core/records.ts";
import { isTerminal } from "../../../protocol/event.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { DueDocument, RunFacts, Sum, ThreadFacts } from "./facts.ts";

export interface Finding {
  readonly rule: RuleName;
  /** A sentence that describes the contradiction. */
  readonly text: string;
  /** The owner, if the contradiction is in a thread. */
  readonly owner?: Owner;
  readonly thread?: string;
  readonly run?: string;
}

/** A rule that a thread or one of its runs violates. */
interface Violation {
  readonly text: string;
  readonly run?: string;
}

type ThreadRule = (thread: ThreadFacts) => Iterable<Violation>;

/** The number of milliseconds after which a due document counts as forgotten, if the server has worked since then. */
export const LATE_MS = 3_600_000;

const THREAD_RULES = {
  *busy_without_run({ status, active, queue }) {
    if (status === "busy" && !active && queue.length === 0)
      yield { text: "The thread is busy, but no run is active or waiting." };
  },

  *run_on_free_thread({ status, active, queue }) {
    const run = active?.run ?? queue[0];
    if (status !== "busy" && run !== undefined)
      yield { run, text: `The thread is ${status}, but the run is active or waiting.` };
  },

  *unknown_run({ runs, active, queue, inbox, calls }) {
    const known = new Set(runs.map(({ id }) => id));
    if (active && !known.has(active.run))
      yield { run: active.run, text: "The run is active, but does not exist." };
    for (const run of queue)
      if (!known.has(run)) yield { run, text: "The run is waiting, but does not exist." };
    for (const run of inbox)
      if (!known.has(run)) yield { run, text: "Messages are queued for the run, but it does not exist." };
    for (const { id, run } of calls)
      if (!known.has(run))
        yield { run, text: `Deferred call ${id} belongs to this run, but the run does not exist.` };
  },

  *lease_of_ended_run({ runs, active, queue }) {
    const ended = new Set(runs.flatMap(({ id, status }) => (isSettled(status) ? [id] : [])));
    if (active && ended.has(active.run))
      yield { run: active.run, text: "A process may still write the run, but the run has ended." };
    for (const run of queue) if (ended.has(run)) yield { run, text: "The run is waiting, but it has ended." };
  },

  *run_without_turn({ runs, active, queue }) {
    for (const { id, status } of runs)
      if (!isSettled(status) && active?.run !== id && !queue.includes(id))
        yield { run: id, text: `The run is ${status}, but it is neither active nor waiting.` };
  },

  *run_without_request({ runs }) {
    for (const { id, status, hasRequest } of runs)
      if (!isSettled(status) && !hasRequest)
        yield { run: id, text: `The run is ${status}, but its request is missing.` };
  },

  *work_that_no_one_finds({ active, queue, calls, isFound }) {
    const run = active?.run ?? queue[0];
    if (run !== undefined && !isFound.runs)
      yield { run, text: "The run has not ended, but processes that look for work cannot find it." };
    const due = calls.find(({ state }) => state !== "sent");
    if (due && !isFound.calls)
      yield {
        text: `Deferred call ${due.id} is ${due.state}, but processes that look for work cannot find it.`,
      };
  },

  *unlisted_thread({ isListed }) {
    if (!isListed) yield { text: "The thread exists, but is missing from the list of threads or of owners." };
  },

  *wrong_count({ counted, messages }) {
    if (counted.messages !== messages.count)
      yield { text: `The thread counts ${counted.messages} messages, but has ${messages.count}.` };
    if (counted.bytes !== undefined && counted.bytes !== messages.bytes)
      yield { text: `The thread counts ${counted.bytes} bytes of messages, but has ${messages.bytes}.` };
  },

  *hole_in_messages({ messages: { hole } }) {
    if (hole !== undefined) yield { text: `A message is missing after number ${hole}.` };
  },

  *call_without_message({ calls, messages }) {
    for (const { id, run, state } of calls)
      if ((state === "accepted" || state === "delivered") && !messages.calls.has(id))
        yield { run, text: `Deferred call ${id} is ${state}, but no message contains it.` };
  },

  *call_without_result({ calls }) {
    for (const { id, run, state, hasReply } of calls)
      if (hasResult(state) !== hasReply)
        yield { run, text: `Deferred call ${id} is ${state}, but ${hasReply ? "has a" : "has no"} result.` };
  },

  *question_without_event({ questions }) {
    for (const { id, run, wasAsked } of questions)
      if (wasAsked === false) yield { run, text: `Interrupt ${id} is open, but no event contains it.` };
  },

  *message_left_for_ended_run({ runs, inbox }) {
    for (const { id, status } of runs)
      if (isSettled(status) && inbox.includes(id))
        yield { run: id, text: "Messages are queued for the run, but it has ended without reading them." };
  },

  *hole_in_log({ runs }) {
    for (const { id, log } of runs)
      if (log.hole !== undefined) yield { run: id, text: `The log has a gap after event ${log.hole}.` };
  },

  *event_twice({ runs }) {
    for (const { id, log } of runs) {
      if (log.twice !== undefined) yield { run: id, text: `The log has event ${log.twice} twice.` };
      if (log.olderEpoch !== undefined)
        yield {
          run: id,
          text: `Event ${log.olderEpoch} belongs to an older attempt than the previous event.`,
        };
    }
  },

  *log_and_head_differ({ runs, active }) {
    for (const run of runs) {
      const head = headOf(run, active);
      if (head === undefined) continue;
      if (run.log.last > head)
        yield {
          run: run.id,
          text: `The log contains event ${run.log.last}, but the run's last event is ${head}.`,
        };
      else if (run.log.last < head && run.keepsLog)
        yield {
          run: run.id,
          text: `The log ends with event ${run.log.last}, but the run's last event is ${head}.`,
        };
    }
  },

  *end_and_log_differ({ runs }) {
    for (const { id, status, log } of runs) {
      if (log.lastEvent === undefined) continue;
      const hasEnd = isTerminal(log.lastEvent);
      if (isSettled(status) && !hasEnd)
        yield { run: id, text: `The run has ended, but its log ends with ${log.lastEvent}.` };
      if (status === "pending") yield { run: id, text: "The run has not begun, but it has events." };
    }
  },
} as const satisfies Readonly<Record<string, ThreadRule>>;

export type RuleName =
  | keyof typeof THREAD_RULES
  | "broken_database"
  | "document_without_turn"
  | "late_document"
  | "lost_document"
  | "wrong_sum";

/** Returns the number of the last entry as stored separately from the log. */
const headOf = ({ id, last }: RunFacts, active: ThreadFacts["active"]): number | undefined =>
  active?.run === id ? active.last : last;

export function wrongIn(thread: ThreadFacts): Finding[] {
  const { owner, id } = thread;
  return Object.entries(THREAD_RULES).flatMap(([rule, holds]) =>
    // The keys come from an object literal.
    [...(holds as ThreadRule)(thread)].map((wrong) => ({
      rule: rule as RuleName,
      ...wrong,
      owner,
      thread: id,
    })),
  );
}

/**
 * `lastWorked` is the time of the most recent change to any thread, in milliseconds since 1970. While a server is
 * stopped, nothing counts as late.
 */
export function wrongWith(document: DueDocument, lastWorked: number): Finding[] {
  const { due, exists, isFound } = document;
  const name = `Document ${document.key} of ${document.collection}`;
  if (!exists) return [{ rule: "lost_document", text: `${name} is due, but does not exist.` }];
  if (!isFound)
    return [
      {
        rule: "document_without_turn",
        text: `${name} has a due time, but no process looks for it at that time.`,
      },
    ];
  if (due > lastWorked - LATE_MS) return [];
  return [{ rule: "late_document", text: `${name} has been due since ${new Date(due).toISOString()}.` }];
}

export function wrongSum({ name, recorded, counted }: Sum): Finding[] {
  if (recorded === counted) return [];
  return [
    {
      rule: "wrong_sum",
      text: `${name} has ${recorded} bytes according to its sum, but ${counted} according to its threads.`,
    },
  ];
}

export const broken = (text: string): Finding => ({ rule: "broken_database", text });
