// Answers that hold the messages of a thread. They are read from the store page by page, each page once the client has
// taken the one before, so that a client that reads nothing of a fat thread costs one page.

import { Readable } from "node:stream";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { ThreadStore } from "../core/stores.ts";
import { ownTurn } from "../lib/async.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { counted, isLong, piecesOf } from "./client-disconnect.ts";
import type { Unread } from "./unread-answers.ts";

/** Of messages that are read and checked at a time. */
const READ_BYTES = 256 * 1024;
/** Of the messages in one page of the API; a page ends with the message that passes it. */
const PAGE_BYTES = 8 * 1024 * 1024;

interface Source {
  readonly threads: Pick<ThreadStore, "messagePage">;
  readonly toJson: (message: Message, text: string) => string;
  readonly owner: Owner;
  readonly id: string;
  /** Begins to count what waits of a long answer. */
  readonly open: () => Unread;
}

/** JSON of a page of messages, with `next_cursor` when the thread has more. Throws `not_found` for an unknown `after`. */
export function messagesAnswer(
  source: Source,
  page: { readonly after?: string | undefined; readonly limit: number },
): Promise<string | Readable> {
  const lists = read(source, { ...page, bytes: PAGE_BYTES });
  return payloadOf(
    objectOf("items", lists, (next_cursor) => omitUndefined({ next_cursor })),
    source.open,
  );
}

/** JSON of all messages of a thread, as the member `messages` of an object that has the members of `rest` as well. */
export function stateAnswer(source: Source, rest: object): Promise<string | Readable> {
  const all = { limit: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  return payloadOf(
    objectOf("messages", read(source, all), () => rest),
    source.open,
  );
}

interface Window {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly bytes: number;
}

type Lists = AsyncGenerator<string[], string | undefined, void>;

/** Yields messages as JSON; returns the id of the last one when the thread has more. */
async function* read({ threads, toJson, owner, id }: Source, window: Window): Lists {
  let { after, limit, bytes } = window;
  for (;;) {
    // Several answers at once take turns, too.
    await ownTurn(owner.tenant);
    const page = { after, bytes: READ_BYTES, ...(limit === Number.POSITIVE_INFINITY ? {} : { limit }) };
    const { texts, isLast } = await threads.messagePage(owner, id, page);
    // A store may answer many readers in one turn.
    await ownTurn(owner.tenant);
    // Every text was written from a message.
    const messages = texts.map((text) => ({ message: JSON.parse(text) as Message, text }));
    yield messages.map(({ message, text }) => toJson(message, text));
    if (isLast) return undefined;
    after = messages.at(-1)?.message.id;
    limit -= messages.length;
    for (const text of texts) bytes -= Buffer.byteLength(text);
    if (limit <= 0 || bytes <= 0) return after;
  }
}

/** The text, in parts, of an object whose member `name` is the list. */
async function* objectOf(
  name: string,
  lists: Lists,
  restOf: (next: string | undefined) => object,
): AsyncGenerator<string, void, void> {
  let before = `{${JSON.stringify(name)}:[`;
  let list = await lists.next();
  for (; !list.done; list = await lists.next()) {
    if (list.value.length === 0) continue;
    yield before + list.value.join(",");
    before = ",";
  }
  const rest = JSON.stringify(restOf(list.value)).slice(1);
  yield `${before === "," ? "" : before}]${rest === "}" ? "" : ","}${rest}`;
}

/** A short text whole. What fails before the first part is there is thrown; after it, the connection is closed. */
async function payloadOf(
  parts: AsyncGenerator<string, void, void>,
  open: () => Unread,
): Promise<string | Readable> {
  let first = "";
  while (!isLong(first)) {
    const part = await parts.next();
    if (part.done) return first;
    first += part.value;
  }
  return Readable.from(pieces(first, parts, open()), { objectMode: false });
}

async function* pieces(
  first: string,
  parts: AsyncGenerator<string, void, void>,
  unread: Unread,
): AsyncGenerator<Buffer, void, void> {
  yield* piecesOfPart(first, unread);
  for await (const part of parts) yield* piecesOfPart(part, unread);
}

function piecesOfPart(part: string, unread: Unread): Generator<Buffer, void, void> {
  const bytes = Buffer.from(part);
  return counted(piecesOf(bytes), bytes.length, unread);
}
