// Answers whose JSON is written in parts: each part is made once the client has taken those before it.

import { Readable } from "node:stream";
import type { FastifyReply } from "fastify";

const PIECE_CHARS = 64 * 1024;

/** Answers with a text of JSON. A short one is sent whole. */
export function sendText(reply: FastifyReply, parts: Iterable<string>): never {
  reply.type("application/json; charset=utf-8");
  const pieces = inPieces(parts);
  const first = pieces.next().value ?? "";
  const second = pieces.next().value;
  const payload =
    second === undefined ? first : Readable.from(chain(first, second, pieces), { objectMode: false });
  // The text is that of a value that the route's schema describes.
  return payload as never;
}

function* chain(first: string, second: string, others: Iterable<string>): Generator<string, void, void> {
  yield first;
  yield second;
  yield* others;
}

/** The same text in fewer parts. */
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
