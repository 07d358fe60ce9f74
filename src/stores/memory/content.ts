// What a thread in memory holds: its messages and its state, weighed with every change.

import type { Message } from "../../core/message.ts";
import { merge } from "../../core/run.ts";
import type { NewThread } from "../../core/stores.ts";
import type { Book } from "./book.ts";
import type { ThreadEntry } from "./entries.ts";

/** Adds a message, which is the thread's from then on. One that it has already is passed over. */
export function addMessage(book: Book, thread: ThreadEntry, message: Message): void {
  const known = idsOf(thread);
  if (known.has(message.id)) return;
  known.add(message.id);
  thread.messageCount = thread.messages.push(message);
  weighContent(book, thread, sizeOf(message));
}

/** The ids of a thread's messages, made once for a run: whoever executes it loads them all, too. */
export function idsOf(thread: ThreadEntry): Set<string> {
  thread.ids ??= new Set(thread.messages.map((message) => message.id));
  return thread.ids;
}

interface SlotChange {
  readonly key: string;
  readonly value?: unknown;
  readonly patch?: Record<string, unknown> | undefined;
}

/** Without a value the slot goes. */
export function setSlot(book: Book, thread: ThreadEntry, { key, value, patch }: SlotChange): void {
  thread.state ??= new Map();
  const before = thread.state.get(key);
  const after = patch ? merge(before?.value, patch) : value;
  const bytes = patch ? (before?.bytes ?? 0) + growth(before?.value, patch) : sizeOf(after);
  if (after === undefined) thread.state.delete(key);
  else thread.state.set(key, { value: after, bytes });
  weighContent(book, thread, bytes - (before?.bytes ?? 0));
}

/** What a new thread begins with is the thread's from then on. */
export function fill(book: Book, thread: ThreadEntry, { messages, state }: NewThread): void {
  for (const message of messages ?? []) addMessage(book, thread, message);
  thread.ids = undefined;
  for (const [key, value] of Object.entries(state ?? {})) setSlot(book, thread, { key, value });
}

/** Forgets the message and all after it. No run may be active. */
export function rewind(book: Book, thread: ThreadEntry, messageId: string): void {
  const gone = thread.messages.splice(thread.messages.findIndex(({ id }) => id === messageId));
  thread.messageCount = thread.messages.length;
  thread.ids = undefined;
  weighContent(book, thread, -gone.reduce((bytes, message) => bytes + sizeOf(message), 0));
}

/** Forgets messages and state. */
export function empty(book: Book, thread: ThreadEntry): void {
  weighContent(book, thread, -thread.contentBytes);
  thread.messages = [];
  thread.messageCount = 0;
  thread.state = undefined;
}

export const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");

/** What a patch adds to a value's weight; it costs what the patch weighs, not what the value does. */
function growth(value: unknown, patch: Readonly<Record<string, unknown>>): number {
  const old: object = Object(value);
  let bytes = 0;
  for (const [key, member] of Object.entries(patch)) {
    if (member !== null) bytes += sizeOf([key, member]);
    if (Object.hasOwn(old, key)) bytes -= sizeOf([key, Reflect.get(old, key)]);
  }
  return bytes;
}

function weighContent(book: Book, thread: ThreadEntry, bytes: number): void {
  thread.contentBytes += bytes;
  book.weigh(thread, bytes);
}
