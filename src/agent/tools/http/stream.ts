// Reads a response that arrives in pieces: one JSON value per line (`application/x-ndjson`), or per server-sent event.

import { StringDecoder } from "node:string_decoder";
import { sseParser } from "../../../lib/sse-parser.ts";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";

type Chunks = AsyncIterable<Uint8Array>;

/**
 * Returns a reader for the texts in a body of this media type, or undefined for a type that is not a stream.
 */
export function streamOf(mediaType: string, maxLength: number): ((chunks: Chunks) => Texts) | undefined {
  if (mediaType === "application/x-ndjson") return (chunks) => linesOf(chunks, maxLength);
  if (mediaType === "text/event-stream") return (chunks) => eventsOf(chunks, maxLength);
  return undefined;
}

type Texts = AsyncGenerator<string, void>;

/** Yields the lines. Text after the last line ending also counts as a line. */
async function* linesOf(chunks: Chunks, maxLength: number): Texts {
  const decoder = new StringDecoder("utf8");
  let begun = "";
  for await (const chunk of chunks) {
    const [first = "", ...others] = decoder.write(Buffer.from(chunk)).split("\n");
    begun += first;
    for (const other of others) {
      if (begun.trim() !== "") yield begun;
      begun = other;
    }
    if (begun.length > maxLength) throw tooLong(maxLength);
  }
  begun += decoder.end();
  if (begun.trim() !== "") yield begun;
}

async function* eventsOf(chunks: Chunks, maxLength: number): Texts {
  let complete: string[] = [];
  const parser = sseParser((data) => complete.push(data), { maxLength });
  for await (const chunk of chunks) {
    push(parser, chunk, maxLength);
    const ready = complete;
    complete = [];
    yield* ready;
  }
}

function push(parser: ReturnType<typeof sseParser>, chunk: Uint8Array, maxLength: number): void {
  try {
    parser.push(chunk);
  } catch {
    throw tooLong(maxLength);
  }
}

const tooLong = (maxLength: number) =>
  new FetchError("unreadable", `a part of the response is longer than ${maxLength / 1024} KiB`);
