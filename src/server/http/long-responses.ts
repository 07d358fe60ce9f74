// JSON responses that may be long. Each part is written in its own tick of the event loop, once the client has read the
// previous part. For a client that reads nothing, only one part is in memory.

import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { Page } from "../../agent/core/stores.ts";
import { freeTick, LARGE_BYTES, ownTick } from "../../lib/ticks.ts";
import type { Credentials } from "../auth/credential-end.ts";
import { hasPrincipal, ownerOf } from "../auth/guard.ts";
import { counted, isLong, piecesOf } from "./client-disconnect.ts";
import { charsOf, jsonParts } from "./json-parts.ts";
import { credentialsEnd } from "./sse.ts";
import type { ReportUnread, UnreadResponses } from "./unread-responses.ts";

/**
 * The number of characters to write in one tick of the event loop. A slice ends with the text that exceeds this number.
 */
const SLICE_CHARS = 128 * 1024;

/** Yields lists of consecutive JSON texts. Returns the values to write after these lists. */
export type Lists<T = void> = AsyncGenerator<readonly string[], T, void>;

export interface LongAnswer<T> {
  readonly name: string;
  readonly lists: Lists<T>;
  /** Called after the list is written. */
  readonly restOf: (end: T) => object | Promise<object>;
}

export type Parts = AsyncGenerator<string, void, void>;

/** Yields `items` as JSON. A short list is written without waiting for a tick. */
export async function* inSlices<T>(tenant: string, items: Iterable<T>, toJson: (item: T) => string): Lists {
  let texts: string[] = [];
  let left = LARGE_BYTES;
  let hasTick = false;
  for (const item of items) {
    if (hasTick ? left <= 0 : charsOf(item, left) > left) {
      if (texts.length > 0) yield texts;
      await freeTick(tenant);
      [texts, left, hasTick] = [[], SLICE_CHARS, true];
    }
    const text = toJson(item);
    texts.push(text);
    left -= text.length;
  }
  yield texts;
}

/** Waits for a tick of the event loop before each piece. Otherwise, a fast client would read all pieces in one tick. */
export async function* oneATick(tenant: string, pieces: Iterable<string>): Parts {
  for (const piece of pieces) {
    await ownTick(tenant);
    yield piece;
  }
}

/** Writes an object whose member `name` is the list, followed by the members of `restOf`. */
export async function* objectOf<T>(
  tenant: string,
  { name, lists, restOf }: LongAnswer<T>,
): AsyncGenerator<string, void, void> {
  yield `{${JSON.stringify(name)}:`;
  const rest = await restOf(yield* listOf(lists));
  yield* joined(inSlices(tenant, membersOf(rest), (text) => text));
  yield "}";
}

/** Writes `value` as JSON. */
export const writtenOf = (tenant: string, value: object): Parts =>
  joined(inSlices(tenant, jsonParts(value), (text) => text));

async function* joined(lists: Lists): Parts {
  for await (const texts of lists) yield texts.join("");
}

function* membersOf(rest: object): Generator<string, void, void> {
  for (const [name, value] of Object.entries(rest)) {
    if (value === undefined) continue;
    yield `,${JSON.stringify(name)}:`;
    yield* jsonParts(value);
  }
}

export async function* listOf<T>(lists: Lists<T>): AsyncGenerator<string, T, void> {
  let before = "[";
  let list = await lists.next();
  for (; !list.done; list = await lists.next()) {
    for (const texts of withLongOnesAlone(list.value)) {
      yield before;
      yield texts;
      before = ",";
    }
  }
  yield before === "[" ? "[]" : "]";
  return list.value;
}

/** Joins the texts with commas. Passes a long text on unchanged, because joining would copy it. */
function* withLongOnesAlone(texts: readonly string[]): Generator<string, void, void> {
  let short: string[] = [];
  for (const text of texts) {
    if (!isLong(text)) {
      short.push(text);
      continue;
    }
    if (short.length > 0) yield short.join(",");
    yield text;
    short = [];
  }
  if (short.length > 0) yield short.join(",");
}

/**
 * Returns a short text whole and a long text as a stream. An error before the first part is thrown; a later error
 * closes the connection. `open` starts counting the unread bytes of a long response: its parts, plus `kept` bytes of
 * their source.
 */
export async function payloadOf(
  parts: Parts,
  open: () => ReportUnread,
  kept = 0,
): Promise<string | Readable> {
  let short = "";
  for (;;) {
    const part = await parts.next();
    if (part.done) return short;
    if (isLong(short + part.value)) {
      const unread = open();
      const all = pieces([short, part.value], parts, (bytes) => unread(kept + bytes));
      return Readable.from(all, { objectMode: false });
    }
    short += part.value;
  }
}

/** Returns a function that sends a page of a list. `toJson` writes one item as JSON. */
export function pageSender<T>(unreadResponses: Pick<UnreadResponses, "open">, toJson: (item: T) => string) {
  return async (reply: FastifyReply, { items, ...rest }: Page<T>): Promise<never> => {
    const { tenant } = ownerOf(reply.request);
    const page = { name: "items", lists: inSlices(tenant, items, toJson), restOf: () => rest };
    return jsonOf(reply, await payloadOf(objectOf(tenant, page), () => unreadResponses.open(reply)));
  };
}

/** Sends a response that is already JSON. */
export function jsonOf(reply: FastifyReply, json: string | Readable): never {
  reply.type("application/json; charset=utf-8");
  // The text is the JSON of a value that the route's schema describes.
  return json as never;
}

/** Cuts long responses when the credentials of their requests end, because the rest must not be read. */
export function endLongAnswers(server: FastifyInstance, credentials: Credentials): void {
  server.addHook("onSend", async (request, reply, payload: unknown) => {
    if (payload instanceof Readable && hasPrincipal(request))
      credentialsEnd(credentials, reply).addEventListener("abort", () => reply.raw.destroy());
    return payload;
  });
}

async function* pieces(
  first: readonly string[],
  parts: Parts,
  unread: ReportUnread,
): AsyncGenerator<Buffer, void, void> {
  yield* piecesOfAll(first, unread);
  for await (const part of parts) yield* piecesOfAll([part], unread);
}

function piecesOfAll(texts: readonly string[], unread: ReportUnread): Generator<Buffer, void, void> {
  const all = texts.map((text) => Buffer.from(text));
  const length = all.reduce((sum, bytes) => sum + bytes.length, 0);
  return counted(
    all.flatMap((bytes) => [...piecesOf(bytes)]),
    length,
    unread,
  );
}
