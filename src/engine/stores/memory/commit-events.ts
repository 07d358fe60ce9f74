// Writes events of a run and their effects: messages, state, and the end of the run. Counts the bytes of every change.

import type { Message, UserMessage } from "../../../agent/core/message.ts";
import { storedMessage } from "../../../agent/core/stored-json.ts";
import type { NewThread } from "../../../agent/core/stores.ts";
import { deepFreeze } from "../../../lib/json.ts";
import { merge } from "../../../protocol/patch.ts";
import { type EventWrite, type RunEnd, type StateWrite, writesOf } from "../event-writes.ts";
import { hasEnd, type MessageText, type PendingEvent, type Stamp, stamp } from "../outcomes.ts";
import { headAfterEnd } from "../thread-head.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import type { LiveRun, RunEntry, Slot, ThreadEntry } from "./records.ts";

/**
 * Adds a message and freezes it. The message then belongs to the thread. Skips a message that the thread already has.
 */
function addMessage(memory: MemoryThreads, thread: ThreadEntry, message: Message, bytes: number): void {
  const known = idsOf(thread);
  if (known.has(message.id)) return;
  known.add(message.id);
  thread.messageCount = thread.messages.push(deepFreeze(message));
  weighMessages(memory, thread, bytes);
}

/** Returns the ids of a thread's messages, cached until the thread is compressed. */
export function idsOf(thread: ThreadEntry): Set<string> {
  thread.ids ??= new Set(thread.messages.map((message) => message.id));
  return thread.ids;
}

export function setSlot(memory: MemoryThreads, thread: ThreadEntry, write: StateWrite): void {
  thread.state ??= new Map();
  const { key } = write;
  const before = thread.state.get(key);
  const after = slotAfter(before, write);
  if (after) thread.state.set(key, after);
  else thread.state.delete(key);
  weighContent(memory, thread, (after?.bytes ?? 0) - (before?.bytes ?? 0));
}

function slotAfter(before: Slot | undefined, write: StateWrite): Slot | undefined {
  if (write.write === "delete_state") return undefined;
  if (write.write === "set_state") return { value: write.value, bytes: sizeOf(write.value) };
  const { patch } = write;
  return { value: merge(before?.value, patch), bytes: (before?.bytes ?? 0) + growth(before?.value, patch) };
}

/** Takes ownership of the thread's first messages. */
export function fill(memory: MemoryThreads, thread: ThreadEntry, { messages, state }: NewThread): void {
  for (const message of messages ?? []) addMessage(memory, thread, message, sizeOf(message));
  for (const [key, value] of Object.entries(state ?? {}))
    setSlot(memory, thread, { write: "set_state", key, value });
}

/** Gives a new thread its messages, which are frozen. `bytes` is their size. */
export function adopt(memory: MemoryThreads, thread: ThreadEntry, messages: Message[], bytes: number): void {
  thread.messages = messages;
  thread.messageCount = messages.length;
  weighMessages(memory, thread, bytes);
}

/** Removes the message and all later ones. No run may be active. */
export function rewind(memory: MemoryThreads, thread: ThreadEntry, messageId: string): void {
  const gone = thread.messages.splice(thread.messages.findIndex(({ id }) => id === messageId));
  thread.messageCount = thread.messages.length;
  thread.ids = undefined;
  weighMessages(memory, thread, -gone.reduce((bytes, message) => bytes + sizeOf(message), 0));
}

/** Removes messages and state. */
export function empty(memory: MemoryThreads, thread: ThreadEntry): void {
  weighContent(memory, thread, -thread.contentBytes);
  thread.messages = [];
  thread.ids = undefined;
  thread.messageCount = 0;
  thread.messageBytes = 0;
  thread.state = undefined;
}

export const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");

/**
 * Returns the number of bytes that a patch adds to a value. The cost depends on the size of the patch, not on the size
 * of the value.
 */
function growth(value: unknown, patch: Readonly<Record<string, unknown>>): number {
  const old: object = Object(value);
  let bytes = 0;
  for (const [key, member] of Object.entries(patch)) {
    if (member !== null) bytes += sizeOf([key, member]);
    if (Object.hasOwn(old, key)) bytes -= sizeOf([key, Reflect.get(old, key)]);
  }
  return bytes;
}

function weighMessages(memory: MemoryThreads, thread: ThreadEntry, bytes: number): void {
  thread.messageBytes += bytes;
  weighContent(memory, thread, bytes);
}

function weighContent(memory: MemoryThreads, thread: ThreadEntry, bytes: number): void {
  thread.contentBytes += bytes;
  memory.weigh(thread, bytes);
}

/**
 * The number of entries at the beginning of a run that wake readers one by one. Later entries wake them once per tick
 * of the event loop.
 */
const FIRST_ENTRIES = 16;

/**
 * Writes the whole `batch`. If the whole batch cannot be written, throws and writes nothing. Throws `unavailable` if
 * there is no room. The end of a run is always written.
 */
export function commit(memory: MemoryThreads, run: LiveRun, batch: readonly PendingEvent[]): void {
  const { thread, log, work } = run;
  const { active } = thread.head;
  const epoch = active?.run === run.id ? active.epoch : 1;
  const ends = hasEnd(batch);
  if (!ends) memory.makeRoom(thread.owner.tenant);
  const inbox = ends ? { inbox: work.inbox, stamp: stampOf(memory, run) } : undefined;
  const { appended, writes } = writesOf(batch, inbox);

  const before = log.bytes;
  for (const { event, json } of appended) log.push({ epoch, seq: log.last + 1, event: event.event, json });
  memory.weigh(thread, log.bytes - before);
  for (const write of writes) carryOut(memory, run, write);

  if (ends || log.last <= FIRST_ENTRIES) log.ring();
  else log.ringSoon();
}

function stampOf(memory: MemoryThreads, { id, thread }: RunEntry): Stamp {
  return stamp({ run_id: id, thread_id: thread.id }, memory.limits.now());
}

function carryOut(memory: MemoryThreads, run: LiveRun, write: EventWrite): void {
  memory.change(run.thread, memory.limits.now());
  if (write.write === "add_message") takeIn(memory, run, write.message);
  else if (write.write === "end_run") settle(memory, run, write);
  else setSlot(memory, run.thread, write);
}

/** Moves the message from the inbox to the thread, if it was in the inbox. */
function takeIn(memory: MemoryThreads, run: LiveRun, { id, text }: MessageText): void {
  const { inbox } = run.work;
  if (inbox.some((left) => left.id === id))
    setInbox(
      memory,
      run,
      inbox.filter((left) => left.id !== id),
    );
  addMessage(memory, run.thread, storedMessage(text), Buffer.byteLength(text));
}

export function setInbox(memory: MemoryThreads, { thread, work }: LiveRun, inbox: UserMessage[]): void {
  memory.weigh(thread, sizeOf(inbox) - sizeOf(work.inbox));
  work.inbox = inbox;
}

function settle(memory: MemoryThreads, run: LiveRun, { outcome: ending, thread: status }: RunEnd): void {
  const { thread, log, work } = run;
  const entry: RunEntry = run;
  entry.status = ending.status;
  entry.usage = ending.usage;
  entry.stopReason = ending.stop_reason;
  entry.error = ending.error;
  entry.details = ending.details;
  entry.endedAt = memory.limits.now();
  memory.change(thread, entry.endedAt);
  entry.lastSeq = log.last;
  entry.work = undefined;
  memory.weigh(thread, -work.requestBytes);
  memory.retain(run);
  if (thread.head.active?.run === run.id) {
    thread.head = headAfterEnd(thread.head);
    thread.outcome = status;
  }
  memory.touch(thread);
  if (thread.head.queue.length > 0 && !thread.head.active) memory.calls.publish({ call: "waiting" });
  log.end();
}
