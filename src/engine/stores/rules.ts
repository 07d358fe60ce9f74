// The rules for threads, runs and deferred calls. Each is a pure function from a thread and a command to the effects
// and the result, and throws an error to refuse the command. All stores carry out the same decisions.

import {
  type CallChange,
  type DeferredCall,
  hasResult,
  isAwaited,
  MAX_DEFERRED_CALLS,
  type NewDeferredCall,
  stateAfter,
} from "../../agent/core/deferred-calls.ts";
import { NO_USAGE, type UserMessage } from "../../agent/core/message.ts";
import type { RunRecord, Thread } from "../../agent/core/records.ts";
import type {
  Claim,
  Lease,
  NewRun,
  NewThread,
  StartResult,
  StopMode,
  WhenBusy,
} from "../../agent/core/stores.ts";
import { titleFrom } from "../../agent/core/title.ts";
import { jsonCopy } from "../../lib/json.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { latestLeaseEnd } from "./clock-set-back.ts";
import {
  cannotRewind,
  grownMeanwhile,
  inboxFull,
  leaseLost,
  noSuchThread,
  queueFull,
  runExists,
  tenantFull,
  threadBusy,
  threadExists,
  tooManyDeferredCalls,
} from "./errors.ts";
import { type Limits, queueRoom } from "./options.ts";
import { cancelledBeforeStart, endingIn, pendingEvent, stamp } from "./outcomes.ts";
import {
  type Decision,
  runAhead,
  type StagedMessages,
  type StoredRun,
  type ThreadHead,
  type View,
  type Write,
} from "./thread-head.ts";

const nothing = <R>(result: R): Decision<R> => ({ writes: [], result: () => result });

/**
 * Accepts a run and claims it if its thread is free. Needs the lookups `key` and `run`, and for a rewind also
 * `message`, `last` and `calls`.
 */
export function start(view: View, { owner, run, whenBusy, limits }: StartCommand): Decision<StartResult> {
  const { known, writes, ahead } = accept(view, { owner, run, whenBusy, limits });
  if (known) return nothing({ outcome: "known", run: known });
  if (ahead !== undefined) return queued(run, whenBusy, writes);
  return {
    writes: [...writes, { write: "hold_run", run: run.id, epoch: 1, attempt: 1, begins: true }],
    result: (now) => {
      const lease = { owner: { ...owner }, thread_id: run.thread_id, run_id: run.id, epoch: 1 };
      const record: RunRecord = { ...newRecord(run, now), status: "running" };
      return { outcome: "claimed", claim: { lease, run: record, request: jsonCopy(run.request) } };
    },
  };
}

export interface StartCommand {
  readonly owner: Claim["lease"]["owner"];
  readonly run: NewRun;
  readonly whenBusy: WhenBusy;
  readonly limits: Pick<Limits, "queueLength" | "tenantQueueLength">;
}

type UnclaimedStart = Exclude<StartResult, { outcome: "claimed" }>;

/** Accepts a run that waits until a process takes it. Also needs the lookup `busyThreads`. */
export function enqueue(view: View, command: StartCommand): Decision<UnclaimedStart> {
  const { run, whenBusy, limits } = command;
  const { known, writes, ahead } = accept(view, command);
  if (known) return nothing({ outcome: "known", run: known });
  const { busyThreads = Number.POSITIVE_INFINITY } = view;
  if (ahead === undefined && busyThreads >= limits.tenantQueueLength)
    throw tenantFull(limits.tenantQueueLength);
  return { ...queued(run, whenBusy, writes), tell: { call: "waiting" } };
}

/** Makes the checks that every new run must pass, in order. */
function accept(view: View, { run, whenBusy, limits }: StartCommand) {
  const { head, known } = view;
  if (known) return { known, writes: [], ahead: undefined };
  if (view.run) throw runExists(run.id);
  const { rewind_to, kept_to } = run;
  const ahead = head && runAhead(head);
  if (head && ahead !== undefined)
    assertMayWait(head, ahead, rewind_to === undefined ? whenBusy : "reject", limits);
  if (rewind_to !== undefined && !view.hasMessage) throw cannotRewind(rewind_to);
  if (rewind_to !== undefined && kept_to !== undefined && !view.isLast) throw grownMeanwhile(run.thread_id);
  const writes: Write[] = [];
  if (!head) writes.push({ write: "create_thread", thread: { id: run.thread_id, metadata: {} } });
  if (rewind_to !== undefined) writes.push(...rewound(view, rewind_to));
  writes.push({ write: "add_run", run, title: titleFrom(run.request.input) });
  return { known: undefined, writes, ahead };
}

function assertMayWait(
  { id, queue }: ThreadHead,
  ahead: string,
  whenBusy: WhenBusy,
  { queueLength }: Pick<Limits, "queueLength">,
): void {
  if (whenBusy === "reject") throw threadBusy(id, ahead);
  if (queue.length >= queueRoom(queueLength, whenBusy)) throw queueFull(id, queueLength);
}

/**
 * Removes the message and all later messages, so that the thread waits only for the calls of the messages that remain.
 */
function rewound({ calls = [] }: View, message: string): Write[] {
  const gone = calls.filter(({ state }) => stateAfter("rewind", state) === "gone");
  return [{ write: "rewind", message }, ...gone.map(dropOf)];
}

const dropOf = ({ call_id, token_hash }: Pick<DeferredCall, "call_id" | "token_hash">): Write => ({
  write: "drop_call",
  call_id,
  token_hash,
});

function queued(run: NewRun, whenBusy: WhenBusy, writes: readonly Write[]): Decision<UnclaimedStart> {
  return {
    writes: [...writes, { write: "queue_run", run: run.id, front: whenBusy === "front" }],
    result: (now) => ({ outcome: "queued", run: newRecord(run, now) }),
  };
}

function newRecord({ id, thread_id, agent, resumes, metadata }: NewRun, now: number): RunRecord {
  return {
    id,
    thread_id,
    agent,
    status: "pending",
    attempt: 1,
    ...(resumes === undefined ? {} : { resumes }),
    usage: NO_USAGE,
    metadata: { ...metadata },
    created_at: new Date(now).toISOString(),
  };
}

/**
 * `spent` is the number of attempts in which the run's process died; its new holder writes the end. `until` is the time
 * to check again.
 */
export type TakeOver =
  | { readonly claim: Claim; readonly spent?: number }
  | { readonly claim?: undefined; readonly until: number | undefined };

/**
 * Takes the active run if no process holds it, or the first waiting run if none is active. Needs the lookup `next`. A
 * run whose processes died `maxAttempts` times is not executed again: it is held under a new epoch only to write its
 * end. A run that died more often than `mostDeaths` keeps waiting.
 */
export function takeOver(
  { head, next, until, now }: View,
  { maxAttempts, leaseMs }: Pick<Limits, "maxAttempts" | "leaseMs">,
  mostDeaths = Number.POSITIVE_INFINITY,
): Decision<TakeOver> {
  if (!head || !next) return nothing({ until: undefined });
  const { active } = head;
  if (!active) return holding(head, next, { epoch: 1, attempt: next.record.attempt, begins: true });
  // The holder may still be alive, so it has the duration of one lease to renew.
  if (until > latestLeaseEnd(now, leaseMs))
    return { writes: [{ write: "renew_run" }], result: (at) => ({ until: at + leaseMs }) };
  if (until > now) return nothing({ until });
  const died = active.attempt - active.released;
  const epoch = active.epoch + 1;
  if (died >= maxAttempts)
    return holding(head, next, { epoch, attempt: active.attempt, begins: false }, { spent: died });
  if (died > mostDeaths) return nothing({ until: now + leaseMs / 4 });
  const hold = { epoch, attempt: active.attempt + 1, begins: false };
  return holding(head, next, hold, died > 0 ? { deaths: died } : {});
}

function holding(
  { owner, id }: ThreadHead,
  { record, request }: StoredRun,
  hold: { readonly epoch: number; readonly attempt: number; readonly begins: boolean },
  { spent, deaths }: { readonly spent?: number; readonly deaths?: number } = {},
): Decision<TakeOver> {
  if (!request) throw new Error("A run that has not ended has its request.");
  const run: RunRecord = { ...record, status: "running", attempt: hold.attempt };
  const lease = { owner: { ...owner }, thread_id: id, run_id: record.id, epoch: hold.epoch };
  return {
    writes: [{ write: "hold_run", run: record.id, ...hold }],
    result: () => ({
      claim: { lease, run, request, ...omitUndefined({ deaths }) },
      ...omitUndefined({ spent }),
    }),
  };
}

/** Returns the active run, so another process can take it over. */
export function release({ head, until }: View, lease: Lease): Decision<void> {
  const { active } = head ?? {};
  if (active?.run !== lease.run_id || active.epoch !== lease.epoch || until === 0) throw leaseLost(lease);
  return { writes: [{ write: "release_run" }], result: () => undefined, tell: { call: "waiting" } };
}

/**
 * Records that an earlier attempt of the active run was not a crash, because its process is alive and only lost the
 * lease.
 */
export function excuse({ head }: View, lease: Lease): Decision<void> {
  const { active } = head ?? {};
  const wasTaken = active?.run === lease.run_id && active.epoch > lease.epoch;
  // There is nothing to do if all earlier attempts are already recorded as not being crashes.
  if (!wasTaken || active.released >= active.attempt - 1) return nothing(undefined);
  return { writes: [{ write: "excuse_run" }], result: () => undefined };
}

/**
 * The maximum number of attempts that do not count as crashes, so that a run that slowly kills its processes eventually
 * fails.
 */
const ACQUITTED_ATTEMPTS = 10;

/** Records that the current attempt of the active run is not a crash, because it has run for a long time. */
export function acquit({ head }: View, lease: Lease): Decision<void> {
  const { active } = head ?? {};
  const isHeld = active?.run === lease.run_id && active.epoch === lease.epoch;
  if (!isHeld || active.released >= active.attempt || active.attempt > ACQUITTED_ATTEMPTS)
    return nothing(undefined);
  return { writes: [{ write: "excuse_run" }], result: () => undefined };
}

/**
 * Asks the active run to stop, with `cancel` taking precedence over `interrupt`, or ends a waiting run. Needs the
 * lookup `run`.
 */
export function stop({ head, run, now }: View, mode: StopMode): Decision<RunRecord | undefined> {
  if (!head || !run) return nothing(undefined);
  const { record, request } = run;
  const { active, queue } = head;
  if (active?.run === record.id) {
    const wish = active.stop === "cancel" ? "cancel" : mode;
    const tell = { call: "stop", run_id: record.id, mode: wish } as const;
    return { writes: [{ write: "stop_run", mode: wish }], result: () => record, tell };
  }
  if (!queue.includes(record.id)) return nothing(record);
  const stamped = stamp({ run_id: record.id, thread_id: head.id }, now);
  const pending = cancelledBeforeStart(record.agent, request, stamped).map(pendingEvent);
  const ending = endingIn(pending);
  return {
    writes: [{ write: "cancel_run", run: record.id, pending, ending }],
    result: () => ({ ...record, ...ending }),
  };
}

/**
 * Queues a message for the active run. Returns false if the run is not active. Needs the lookups `message` and `inbox`.
 */
export function steer(
  { head, hasMessage, inbox = [] }: View,
  runId: string,
  message: UserMessage,
  { inboxLength }: Pick<Limits, "inboxLength">,
): Decision<boolean> {
  if (head?.active?.run !== runId) return nothing(false);
  if (hasMessage || inbox.includes(message.id)) return nothing(true);
  if (inbox.length >= inboxLength) throw inboxFull(runId, inboxLength);
  return { writes: [{ write: "leave_message", message }], result: () => true };
}

export function createThread({ head }: View, thread: NewThread, staged?: StagedMessages): Decision<Thread> {
  if (head) throw threadExists(thread.id);
  const { id, agent, metadata, parent, forked_from, messages = [] } = thread;
  const title = thread.title ?? titleFrom(messages);
  return {
    writes: [{ write: "create_thread", thread: { ...thread, ...omitUndefined({ title }) }, staged }],
    result: (now) => ({
      id,
      ...(agent === undefined ? {} : { agent }),
      ...omitUndefined({ title }),
      metadata: { ...metadata },
      ...(parent === undefined ? {} : { parent: { ...parent } }),
      ...(forked_from === undefined ? {} : { forked_from: { ...forked_from } }),
      status: "idle",
      message_count: staged?.count ?? new Set(messages.map((message) => message.id)).size,
      created_at: new Date(now).toISOString(),
      updated_at: new Date(now).toISOString(),
    }),
  };
}

/**
 * Returns true if the thread exists. Values in the thread's state are deleted only while no run is active on the
 * thread.
 */
export function updateThread(
  { head }: View,
  { title, metadata, forget }: { title?: string; metadata?: Thread["metadata"]; forget?: readonly string[] },
): Decision<boolean> {
  if (!head) return nothing(false);
  if (forget) assertFree(head);
  return { writes: [{ write: "describe_thread", title, metadata, forget }], result: () => true };
}

/** Clears or deletes a free thread. Returns false if the thread does not exist. */
export function emptyThread({ head }: View, write: "clear_thread" | "delete_thread"): Decision<boolean> {
  if (!head) return nothing(false);
  assertFree(head);
  return { writes: [{ write }], result: () => true };
}

function assertFree(head: ThreadHead): void {
  const ahead = runAhead(head);
  if (ahead !== undefined) throw threadBusy(head.id, ahead);
}

/** Replaces the stored call with a new one. Needs the lookup `calls`. */
export function openCall({ head, now, calls = [] }: View, call: NewDeferredCall): Decision<void> {
  if (!head) throw noSuchThread(call.thread_id);
  const others = calls.filter(({ call_id }) => call_id !== call.call_id);
  // First deletes calls that were never accepted.
  const gone = others.filter((each) => each.state === "sent" && isOver(each, now));
  if (others.length - gone.length >= MAX_DEFERRED_CALLS) throw tooManyDeferredCalls(call.thread_id);
  const put: Write = { write: "put_call", call: { ...call, state: "sent" }, due_at: undefined };
  const replaced = calls.filter(({ call_id }) => call_id === call.call_id);
  return { writes: [...[...gone, ...replaced].map(dropOf), put], result: () => undefined };
}

/** Returns the call after the change, or undefined if it was removed. Needs the lookup `call`. */
export function changeCall({ call }: View, change: CallChange): Decision<DeferredCall | undefined> {
  const state = call && stateAfter(change, call.state);
  if (!state) return nothing(call);
  if (state === "gone") return { writes: [dropOf(call)], result: () => undefined };
  const changed = { ...call, state };
  return {
    writes: [{ write: "put_call", call: changed, due_at: Date.parse(call.expires_at) }],
    result: () => changed,
  };
}

/**
 * Stores the result of a call, once. Returns undefined if no call accepts a result for this token. Needs the lookup
 * `call`.
 */
export function deliverCall(
  { call, now }: View,
  token_hash: string,
  reply: Record<string, unknown>,
): Decision<DeferredCall | undefined> {
  const state = call && stateAfter("deliver", call.state);
  if (!state || state === "gone" || call.token_hash !== token_hash || isOver(call, now))
    return nothing(undefined);
  const delivered = { ...call, state, reply };
  return { writes: [{ write: "put_call", call: delivered, due_at: now }], result: () => delivered };
}

export function forgetCall({ call }: View): Decision<void> {
  return { writes: call ? [dropOf(call)] : [], result: () => undefined };
}

const isOver = ({ expires_at }: Pick<DeferredCall, "expires_at">, now: number) =>
  Date.parse(expires_at) <= now;

/**
 * Returns true if the thread can continue with a call, because the result has arrived or the awaited call has expired.
 */
export const canContinue = (call: Pick<DeferredCall, "state" | "expires_at">, now: number): boolean =>
  hasResult(call.state) || (isAwaited(call.state) && isOver(call, now));
