// Responses that contain the messages of a thread. They are read from the store page by page, each page once the client
// has read the previous one. For a client that reads nothing, only one page of a large thread is in memory.

import type { Readable } from "node:stream";
import type { Message } from "../../agent/core/message.ts";
import { storedMessage } from "../../agent/core/stored-json.ts";
import type { ThreadStore } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import { type Lists, objectOf, payloadOf } from "./long-responses.ts";
import type { ReportUnread } from "./unread-responses.ts";

/** The number of bytes of messages to read and check at a time. */
const READ_BYTES = 256 * 1024;
/** The number of bytes of messages in one page of the API. A page ends with the message that exceeds this number. */
const PAGE_BYTES = 8 * 1024 * 1024;

interface Source {
  readonly threads: Pick<ThreadStore, "messagePage">;
  readonly toJson: (message: Message, text: string) => string;
  readonly owner: Owner;
  readonly id: string;
  readonly open: () => ReportUnread;
}

/**
 * Returns a page of messages as JSON, with `next_cursor` if the thread has more. Throws `not_found` for an unknown
 * `after`.
 */
export function messagesAnswer(
  source: Source,
  page: { readonly after?: string | undefined; readonly limit: number },
): Promise<string | Readable> {
  const lists = read(source, { ...page, bytes: PAGE_BYTES });
  const restOf = (next_cursor: string | undefined) => ({ next_cursor });
  return payloadOf(objectOf(source.owner.tenant, { name: "items", lists, restOf }), source.open);
}

/**
 * Returns the JSON of an object that has all messages of a thread as `messages`, followed by the members of `restOf`.
 * `restOf` is called after the messages are written.
 */
export function stateAnswer(source: Source, restOf: () => Promise<object>): Promise<string | Readable> {
  const all = { limit: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  const answer = { name: "messages", lists: read(source, all), restOf };
  return payloadOf(objectOf(source.owner.tenant, answer), source.open);
}

interface Window {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly bytes: number;
}

/** Yields messages as JSON. Returns the id of the last message if the thread has more. */
async function* read({ threads, toJson, owner, id }: Source, window: Window): Lists<string | undefined> {
  let { after, limit, bytes } = window;
  for (;;) {
    const page = { after, bytes: READ_BYTES, ...(limit === Number.POSITIVE_INFINITY ? {} : { limit }) };
    const { texts, isLast } = await threads.messagePage(owner, id, page);
    const messages = texts.map((text) => ({ message: storedMessage(text), text }));
    yield messages.map(({ message, text }) => toJson(message, text));
    if (isLast) return undefined;
    after = messages.at(-1)?.message.id;
    limit -= messages.length;
    for (const text of texts) bytes -= Buffer.byteLength(text);
    if (limit <= 0 || bytes <= 0) return after;
  }
}
