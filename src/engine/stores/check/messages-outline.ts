// The outline of a thread's messages: read page by page, kept as a few numbers and the ids of calls.

/** `position`: its number among those of the thread, which begin at any number. */
export interface MessageFacts {
  readonly position: number;
  readonly bytes: number;
  /** The ids of the tool calls that it makes. */
  readonly calls: readonly string[];
}

export interface MessagesOutline {
  readonly count: number;
  readonly bytes: number;
  readonly last: number;
  /** The position before the first hole. */
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

/** The outline once `messages` are behind what it has. */
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
