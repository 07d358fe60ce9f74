// Checkpoints for clients that branch from them. None is stored: each is a place between two messages, and its id names
// that place.

import type { Message } from "../../../agent/core/message.ts";

/** The thread up to one of its messages. */
export interface Checkpoint {
  /** Sorts by time. It becomes unknown when the thread is rewritten before its place. */
  readonly id: string;
  /** The number of messages up to it. */
  readonly count: number;
}

function checkpointAfter(messages: readonly Message[], count: number): Checkpoint {
  return { id: `${String(count).padStart(8, "0")}-${messages[count - 1]?.id ?? "empty"}`, count };
}

/** The checkpoint at the end of the thread. */
export const headOf = (messages: readonly Message[]) => checkpointAfter(messages, messages.length);

/**
 * Places from which a client can start again, oldest first: the start, before and after each message of the user, and the
 * end.
 */
export function checkpointsOf(messages: readonly Message[]): Checkpoint[] {
  const counts = new Set([0]);
  for (const [index, { role }] of messages.entries()) if (role === "user") counts.add(index).add(index + 1);
  counts.add(messages.length);
  return [...counts].map((count) => checkpointAfter(messages, count));
}

/** The checkpoint before a place of the thread; undefined at the start. */
export function checkpointBefore(messages: readonly Message[], count: number): Checkpoint | undefined {
  const isUser = (index: number) => messages[index]?.role === "user";
  for (let at = count - 1; at >= 0; at--)
    if (at === 0 || isUser(at) || isUser(at - 1)) return checkpointAfter(messages, at);
  return undefined;
}

/** Any place of the thread by its id; undefined if the thread does not have it, or no longer has it. */
export function checkpointOf(messages: readonly Message[], id: string): Checkpoint | undefined {
  const count = Number(/^\d{8}/.exec(id)?.[0] ?? Number.NaN);
  if (!(count <= messages.length)) return undefined;
  const found = checkpointAfter(messages, count);
  return found.id === id ? found : undefined;
}

/** A number that grows with time, even if messages were removed in between. */
export function stepOf(messages: readonly Message[], { count }: Checkpoint): number {
  const last = messages[count - 1];
  return last ? Date.parse(last.created_at) : -1;
}
