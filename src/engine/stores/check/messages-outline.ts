// Outlines a thread's messages by reading them page by page and keeping a few numbers and the ids of calls.

/** `position` is the message's number within the thread. Numbers can start anywhere. */
export interface MessageFacts {
  readonly position: number;
  readonly bytes: number;
  /** The ids of the tool calls in the message. */
  readonly calls: readonly string[];
}

export interface MessagesOutline {
  readonly count: number;
  readonly bytes: number;
  readonly last: number;
  /** The position before the first gap. */
  readonly hole: number | undefined;
  /** The ids of all tool calls. */
  readonly calls: ReadonlySet<string>;
}

export const NO_MESSAGES: MessagesOutline = {
  count: 0,
  bytes: 0,
  last: 0,
  hole: undefined,
  calls: new Set(),
};

/** Returns the outline after appending `messages`. */
export function withMessages(before: MessagesOutline, messages: readonly MessageFacts[]): MessagesOutline {
  let { count, bytes, last, hole } = before;
  const calls = new Set(before.calls);
  for (const message of messages) {
    if (count > 0 && message.position !== last + 1) hole ??= last;
    count++;
    bytes += message.bytes;
    last = message.position;
    for (const id of message.calls) calls.add(id);
  }
  return { count, bytes, last, hole, calls };
}
