// Responses whose JSON is written in parts. Each part is created once the client has read the previous ones.

import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";
import { areLong, lengthOfAll, type Message } from "../../agent/core/message.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { clientDisconnect } from "../../server/http/client-disconnect.ts";
import { inSlices, oneATick } from "../../server/http/long-responses.ts";
import type { ReportUnread, UnreadResponses } from "../../server/http/unread-responses.ts";
import { messageShape } from "./history.ts";

const PIECE_CHARS = 64 * 1024;

export interface WrittenJson {
  readonly parts: Iterable<string>;
  /** The source of the parts, which is kept until the client has read the last part. */
  readonly texts: readonly string[];
  /** Counts the unread bytes, if counting has started. */
  readonly unread?: ReportUnread | undefined;
}

/**
 * Writes the messages as JSON, in several ticks of the event loop if the thread is long. A long thread counts as unread
 * from the start, because many clients may request it at once. Throws `unavailable` if there is no room for the
 * messages. Stops when the client disconnects.
 */
export async function messageTexts(
  reply: FastifyReply,
  messages: readonly Message[],
  unreadResponses: Pick<UnreadResponses, "open">,
): Promise<Pick<WrittenJson, "texts" | "unread">> {
  const left = clientDisconnect(reply);
  const unread = areLong(messages) ? unreadResponses.open(reply) : undefined;
  unread?.(lengthOfAll(messages));
  const texts: string[] = [];
  const toJson = (message: Message) => JSON.stringify(messageShape(message));
  for await (const slice of inSlices(ownerOf(reply.request).tenant, messages, toJson)) {
    left.throwIfAborted();
    texts.push(...slice);
  }
  return { texts, unread };
}

/** Sends a JSON text. A short text is sent whole. A long text counts as unread until the client has read it. */
export function sendText(
  reply: FastifyReply,
  { parts, texts, unread }: WrittenJson,
  unreadResponses: Pick<UnreadResponses, "open">,
): never {
  reply.type("application/json; charset=utf-8");
  const pieces = inPieces(parts);
  const first = pieces.next().value ?? "";
  const second = pieces.next().value;
  const { tenant } = ownerOf(reply.request);
  const all = () => oneATick(tenant, chain(first, second ?? "", pieces));
  const payload =
    second === undefined
      ? first
      : Readable.from(counted(all(), texts, unread ?? unreadResponses.open(reply)), { objectMode: false });
  // The text is the JSON of a value that the route's schema describes.
  return payload as never;
}

function* chain(first: string, second: string, others: Iterable<string>): Generator<string, void, void> {
  yield first;
  yield second;
  yield* others;
}

async function* counted(
  pieces: AsyncIterable<string>,
  texts: readonly string[],
  unread: ReportUnread,
): AsyncGenerator<string, void, void> {
  const kept = texts.reduce((length, text) => length + text.length, 0);
  for await (const piece of pieces) {
    unread(kept + piece.length);
    yield piece;
  }
}

/** Yields the same text in fewer parts. */
function* inPieces(parts: Iterable<string>): Generator<string, void, void> {
  let piece = "";
  for (const part of parts) {
    piece += part;
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = "";
  }
  if (piece !== "") yield piece;
}
