// Checkpoints for clients that branch from them. None is stored: each is a position between two messages, and its id
// identifies that position.

import type { Message } from "../../../agent/core/message.ts";

/** The thread up to one of its messages. */
export interface Checkpoint {
  /** Sorts by time. It becomes unknown if the thread is rewritten before this position. */
  readonly id: string;
  /** The number of messages up to the checkpoint. */
  readonly count: number;
}

function checkpointAfter(messages: readonly Message[], count: number): Checkpoint {
  return { id: `${String(count).padStart(8, "0")}-${messages[count - 1]?.id ?? "empty"}`, count };
}

/** Returns the checkpoint at the end of the thread. */
export const headOf = (messages: readonly Message[]) => checkpointAfter(messages, messages.length);

/**
 * Returns the checkpoints from which a client can start again, oldest first: the start, the positions before and after
 * each user message, and the end.
 */
export function checkpointsOf(messages: readonly Message[]): Checkpoint[] {
  const counts = new Set([0]);
  for (const [index, { role }] of messages.entries()) if (role === "user") counts.add(index).add(index + 1);
  counts.add(messages.length);
  return [...counts].map((count) => checkpointAfter(messages, count));
}

/** Returns the checkpoint before a position in the thread, or undefined at the start. */
export function checkpointBefore(messages: readonly Message[], count: number): Checkpoint | undefined {
  const isUser = (index: number) => messages[index]?.role === "user";
  for (let at = count - 1; at >= 0; at--)
    if (at === 0 || isUser(at) || isUser(at - 1)) return checkpointAfter(messages, at);
  return undefined;
}

/** Returns the checkpoint with this id, or undefined if the thread does not have it or no longer has it. */
export function checkpointOf(messages: readonly Message[], id: string): Checkpoint | undefined {
  const count = Number(/^\d{8}/.exec(id)?.[0] ?? Number.NaN);
  if (!(count <= messages.length)) return undefined;
  const found = checkpointAfter(messages, count);
  return found.id === id ? found : undefined;
}

/** Returns a number that increases with time, even if messages were removed in between. */
export function stepOf(messages: readonly Message[], { count }: Checkpoint): number {
  const last = messages[count - 1];
  return last ? Date.parse(last.created_at) : -1;
}
