// Parses threads, runs and their content from the scripts' replies. The JSON is not validated, because this folder
// wrote it from values of the same types.

import type { DeferredCall, NewDeferredCall } from "../../../agent/core/deferred-calls.ts";
import { NO_USAGE, type UserMessage } from "../../../agent/core/message.ts";
import type { RunRecord, RunRequest, Thread, ThreadStatus } from "../../../agent/core/records.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { merge } from "../../../protocol/patch.ts";
import type { RunOutcome } from "../outcomes.ts";
import { runAhead, type StoredRun, type ThreadHead, type View } from "../thread-head.ts";
import type {
  CallReply,
  DescribeReply,
  HeadReply,
  RunReply,
  StoredReply,
  ThreadReply,
} from "./thread-scripts.ts";

/** A thread as it was loaded, with the values that `commit` needs to detect a change. */
export interface RedisView extends View {
  readonly seen: string;
  /** The end of the lease as stored in Redis. */
  readonly heldUntil: string;
  /** See `Retention.used`. */
  readonly life: string;
}

/**
 * The view of a thread that does not exist. Decisions are based on it if the thread is probably new and has not been
 * loaded.
 */
export const NO_THREAD: RedisView = { now: 0, head: undefined, until: 0, seen: "", heldUntil: "", life: "" };

/** `graceMs` is the number of milliseconds by which the lease is extended. */
export function viewOf(id: string, reply: ThreadReply, graceMs: number): RedisView {
  const [now, head, known, run, next, hasMessage, inbox, call, calls, isLast] = reply;
  if (!head) return { ...NO_THREAD, now };
  return {
    ...headViewOf(id, head, graceMs),
    now,
    known: known ? runOf(id, known) : undefined,
    run: storedRun(id, run),
    next: storedRun(id, next),
    hasMessage: hasMessage === 1,
    isLast: isLast === 1,
    inbox: inbox ?? undefined,
    call: call ? callOf(call) : undefined,
    calls: calls?.map(callOf),
  };
}

/** Like `viewOf`, without the time. */
export function headViewOf(id: string, [seen, owner, life, lease, queue]: HeadReply, graceMs = 0): RedisView {
  const heldUntil = lease[5] ?? "";
  return {
    now: 0,
    seen,
    heldUntil,
    life,
    head: { owner: ownerOf(owner), id, active: activeOf(lease), queue },
    until: heldUntil === "" || heldUntil === "0" ? 0 : Number(heldUntil) + graceMs,
  };
}

function activeOf([run, attempt, epoch, released, stop]: HeadReply[3]): ThreadHead["active"] {
  if (!run) return undefined;
  return {
    run,
    epoch: Number(epoch),
    attempt: Number(attempt),
    released: Number(released ?? 0),
    stop: stop ?? undefined,
  };
}

function storedRun(threadId: string, reply: StoredReply | null | undefined): StoredRun | undefined {
  if (!reply) return undefined;
  const [run, request] = reply;
  return {
    record: runOf(threadId, run),
    request: request === null ? undefined : (JSON.parse(request) as RunRequest),
  };
}

function callOf([state, about, reply]: CallReply): DeferredCall {
  // `put_call` writes no other state.
  const call = { ...(JSON.parse(about) as NewDeferredCall), state: state as DeferredCall["state"] };
  return reply === null ? call : { ...call, reply: JSON.parse(reply) };
}

export function threadOf(id: string, reply: DescribeReply, { head, life }: RedisView): Thread {
  const [messages, , agent, title, metadata, created, updated, parent, forkedFrom] = reply;
  const [, outcome = ""] = life.split(" ");
  const isBusy = head && runAhead(head) !== undefined;
  return {
    id,
    ...(agent === null ? {} : { agent }),
    ...(title === null ? {} : { title: JSON.parse(title) }),
    metadata: JSON.parse(metadata ?? "{}"),
    ...(parent === null ? {} : { parent: JSON.parse(parent) }),
    ...(forkedFrom === null ? {} : { forked_from: JSON.parse(forkedFrom) }),
    status: isBusy ? "busy" : ((outcome || "idle") as ThreadStatus),
    message_count: messages,
    created_at: dateOf(created),
    updated_at: dateOf(updated),
  };
}

/** The part of a run that never changes. */
export type FixedRunFields = Pick<RunRecord, "agent" | "metadata" | "resumes">;

export function runOf(thread_id: string, [id, made, end, attempt]: RunReply): RunRecord {
  const [created, text = ""] = split(made, 1);
  const { agent, metadata, resumes } = JSON.parse(text) as FixedRunFields;
  const known = { id, thread_id, agent };
  const rest = { ...(resumes === undefined ? {} : { resumes }), metadata, created_at: dateOf(created) };
  if (end === null) {
    const status = attempt === null ? "pending" : "running";
    return { ...known, status, attempt: Number(attempt ?? 1), usage: NO_USAGE, ...rest };
  }
  const [attempts, ended, , , , how = ""] = split(end, 5);
  const { status, ...ending } = JSON.parse(how) as RunOutcome;
  return { ...known, status, attempt: Number(attempts), ...ending, ...rest, ended_at: dateOf(ended) };
}

export const ownerText = ({ tenant, user }: Owner) => JSON.stringify([tenant, user]);

export function ownerOf(text: string): Owner {
  const [tenant, user] = JSON.parse(text) as [string, string];
  return { tenant, user };
}

/** Returns the queued messages of a run, oldest first. Each reply consists of a number and a message. */
export function inboxOf(left: readonly string[]): UserMessage[] {
  return left
    .map((entry) => split(entry, 1))
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([, message = ""]) => JSON.parse(message) as UserMessage);
}

/**
 * The prefix of the names under which a slot's patches are stored. No slot's prefix is the beginning of another slot's
 * prefix.
 */
export const patchName = (slot: string) => `${slot.length}:${slot}`;

/** Returns all slots, with the values that were set merged with their patches. */
export function stateOf(set: readonly string[], patches: readonly string[]): Record<string, unknown> {
  const slots = new Map<string, unknown>();
  for (const [slot, value] of pairs(set)) slots.set(slot, JSON.parse(value));
  for (const [slot, members] of membersOf(patches)) {
    const inOrder = members.sort((a, b) => a.number - b.number).map(({ name, value }) => [name, value]);
    slots.set(slot, merge(slots.get(slot), Object.fromEntries(inOrder)));
  }
  return Object.fromEntries(slots);
}

interface Member {
  readonly number: number;
  readonly name: string;
  readonly value: unknown;
}

/**
 * Groups by slot. A field consists of a slot's name, followed either by `/` and the member's name, or by `=` for the
 * slot's counter.
 */
function membersOf(patches: readonly string[]): Map<string, Member[]> {
  const slots = new Map<string, Member[]>();
  for (const [field, text] of pairs(patches)) {
    const colon = field.indexOf(":");
    const end = colon + 1 + Number(field.slice(0, colon));
    const slot = field.slice(colon + 1, end);
    const members = slots.get(slot) ?? [];
    slots.set(slot, members);
    const [number, value = ""] = split(text, 1);
    if (field[end] === "/")
      members.push({ number: Number(number), name: field.slice(end + 1), value: JSON.parse(value) });
  }
  return slots;
}

function* pairs(flat: readonly string[]): Generator<[field: string, value: string]> {
  for (let at = 0; at < flat.length; at += 2) yield [flat[at] ?? "", flat[at + 1] ?? ""];
}

/** Splits at the first `count` spaces. Returns the words and the rest. */
function split(text: string, count: number): string[] {
  const words = [];
  let from = 0;
  while (words.length < count) {
    const space = text.indexOf(" ", from);
    words.push(text.slice(from, space));
    from = space + 1;
  }
  return [...words, text.slice(from)];
}

const dateOf = (time: string | null | undefined) => new Date(Number(time)).toISOString();
