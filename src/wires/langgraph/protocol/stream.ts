// The events of a thread, across all of its runs, for one stream of the protocol. A client that reconnects sends no
// position, but it recognizes the ids of its events. The newest runs are therefore sent again from their first event.

import { hasCode } from "../../../agent/core/errors.ts";
import { isSettled, type RunRecord } from "../../../agent/core/records.ts";
import { storedEvent } from "../../../agent/core/stored-json.ts";
import type { LogEntry, Stores } from "../../../agent/core/stores.ts";
import { keyOf, newestRun } from "../../../engine/runs/control.ts";
import { runsAfter, untilThread } from "../../../engine/runs/follow.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Frame, Frames } from "../../../server/http/sse.ts";
import { matches, type StreamFilter } from "./filter.ts";
import { type ProtocolFold, project } from "./table.ts";
import type { LangGraphEvent, Position } from "./told.ts";

/** The number of runs to send again in addition to the newest run. Earlier runs are part of the thread's state. */
const REPLAYED = 9;

interface ThreadStream {
  readonly owner: Owner;
  readonly threadId: string;
  readonly filter: StreamFilter;
}

/** Sends nothing until the thread exists. Does not end before `signal` aborts. */
export function threadEvents(stores: Stores, { owner, threadId, filter }: ThreadStream): Frames {
  return async function* (signal) {
    while (!signal.aborted) {
      if (!(await untilThread(stores, { owner, threadId }, signal))) return;
      const first = await firstReplayed(stores, owner, threadId);
      if (first) yield* runEvents(stores, { owner, run: first, filter }, signal);
      for await (const run of runsAfter(stores, { owner, threadId, last: first?.id }, signal))
        yield* runEvents(stores, { owner, run, filter }, signal);
    }
  };
}

async function firstReplayed({ runs }: Stores, owner: Owner, threadId: string) {
  const { items } = await runs.list(owner, threadId, { limit: REPLAYED + 1 });
  for (const run of items.toReversed())
    if ((await runs.place(owner, threadId, run.id)) !== undefined) return run;
  return undefined;
}

interface RunStream {
  readonly owner: Owner;
  readonly run: RunRecord;
  readonly filter: StreamFilter;
}

async function* runEvents(
  stores: Stores,
  { owner, run, filter }: RunStream,
  signal: AbortSignal,
): AsyncGenerator<readonly Frame[], void, void> {
  const { events, runs } = stores;
  const key = keyOf(owner, run);
  const place = (await runs.place(owner, run.thread_id, run.id)) ?? 0;
  if (numberOf(place + 1, { seq: 0, k: 0 }) <= (filter.since ?? 0)) return;
  for (let after = 0; ; ) {
    const fold = await foldOf(stores, { owner, run, filter });
    try {
      for await (const batch of events.read(key, after, signal)) {
        const told = withoutSuperseded(batch.flatMap((entry) => eventsOf(entry, { fold, run, filter })));
        yield told.flatMap((each) => frameOf(each, { run, place, since: filter.since }));
        after = batch.at(-1)?.seq ?? after;
      }
      return;
    } catch (error) {
      if (!hasCode(error, "events_expired")) throw error;
      const { first, last } = await events.bounds(key);
      if (last === 0 || last <= after) return;
      after = Math.max(first - 1, after);
    }
  }
}

/** Returns a fold of the current thread. Streams without messages do not load them. */
async function foldOf(stores: Stores, { owner, run, filter }: RunStream): Promise<ProtocolFold> {
  const { threads } = stores;
  const isWatching = filter.channels.every((channel) => channel === "lifecycle" || channel === "input");
  const [messages, state, isPast] = await Promise.all([
    isWatching ? [] : threads.messages(owner, run.thread_id),
    isWatching ? {} : threads.state(owner, run.thread_id),
    hasSuccessor(stores, owner, run),
  ]);
  return project({ messages, state, isPast });
}

/** Returns true if a later run has started or is waiting to start. */
async function hasSuccessor({ runs }: Stores, owner: Owner, run: RunRecord): Promise<boolean> {
  const begun = await runs.begun(owner, run.thread_id);
  if (begun && begun.id !== run.id) return true;
  const now = await runs.get(owner, run.thread_id, run.id);
  const newest = await newestRun(runs, owner, run.thread_id);
  return Boolean(now && isSettled(now.status) && newest && !isSettled(newest.status));
}

function eventsOf(
  { epoch, seq, event, json }: LogEntry,
  { fold, run, filter }: { fold: ProtocolFold; run: RunRecord; filter: StreamFilter },
): LangGraphEvent[] {
  if (event === "on_chat_model_stream" && !filter.channels.includes("messages")) return [];
  // The log contains only events that were checked when they were appended.
  return fold(storedEvent({ json }), { epoch, seq }, run).filter((told) => matches(filter, told));
}

/** Keeps only the last of several simultaneous snapshots, because each contains everything from the previous one. */
function withoutSuperseded(told: readonly LangGraphEvent[]): LangGraphEvent[] {
  const isSnapshot = ({ method, isWithdrawal }: LangGraphEvent) =>
    (method === "values" || method === "checkpoints") && !isWithdrawal;
  const last = new Map<string, LangGraphEvent>();
  const keyOf = ({ method, namespace }: LangGraphEvent) => `${method} ${namespace.join(" ")}`;
  for (const each of told) if (isSnapshot(each)) last.set(keyOf(each), each);
  return told.filter((each) => !isSnapshot(each) || last.get(keyOf(each)) === each);
}

function frameOf(
  { at, method, namespace, node, timestamp, data }: LangGraphEvent,
  { run, place, since = 0 }: { run: RunRecord; place: number; since?: number | undefined },
): Frame[] {
  const seq = numberOf(place, at);
  if (seq <= since) return [];
  const event_id = `${run.id}:${at.epoch}-${at.seq}.${at.k}`;
  const params = { namespace, timestamp, ...(node ? { node } : {}), data };
  return [
    { id: event_id, event: method, data: JSON.stringify({ type: "event", event_id, seq, method, params }) },
  ];
}

/** The maximum number of events in a run, and the maximum number of protocol events for each of these events. */
const [EVENTS, PARTS] = [2 ** 24, 2 ** 6];

/**
 * Returns the number of an event. It is the same for every reader and increases across all runs of a thread. It
 * combines the run's place, the event's number in its log, and the number of the protocol event for that event.
 */
export const numberOf = (place: number, { seq, k }: Pick<Position, "seq"> & { readonly k: number }) =>
  (place * EVENTS + Math.min(seq, EVENTS - 1)) * PARTS + Math.min(k, PARTS - 1);
/** Returns the number of the thread's last event. Questions up to this number may already be answered. */
export async function lastNumber({ runs, events }: Stores, owner: Owner, threadId: string): Promise<number> {
  const newest = await runs.begun(owner, threadId);
  const place = newest && (await runs.place(owner, threadId, newest.id));
  if (!newest || place === undefined) return 0;
  const { last } = await events.bounds(keyOf(owner, newest));
  return numberOf(place, { seq: last || EVENTS, k: PARTS });
}
