// Parses the binary frames of `application/vnd.amazon.eventstream`, Bedrock's streaming format:
// https://smithy.io/2.0/aws/amazon-eventstream.html

import zlib from "node:zlib";
import { z } from "zod";
import { ProviderError } from "./failure.ts";

/** The maximum size of a frame in bytes. A delta takes only a few hundred bytes. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** The size of the prelude: the lengths of the frame and its headers, and a checksum of both. */
const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
/** The type code of text headers. Bedrock sends no other type. */
const TEXT = 7;

/** Bedrock's wrapper around one event of the model. */
const Chunk = z.object({ bytes: z.base64() });

/**
 * Calls `onData` with the JSON of each event. Throws `ProviderError` for damaged frames and for errors that
 * arrive as frames.
 */
export function awsFrames(onData: (data: string) => void): { push(bytes: Uint8Array): void } {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push(bytes) {
      rest = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes]);
      while (rest.length >= PRELUDE_BYTES) {
        const length = lengthOf(rest);
        if (rest.length < length) return;
        const data = dataOf(rest.subarray(0, length));
        rest = rest.subarray(length);
        if (data !== undefined) onData(data);
      }
    },
  };
}

function lengthOf(bytes: Buffer): number {
  const prelude = bytes.subarray(0, PRELUDE_BYTES - CHECKSUM_BYTES);
  if (zlib.crc32(prelude) !== bytes.readUInt32BE(prelude.length)) throw damaged();
  const length = bytes.readUInt32BE(0);
  if (length > MAX_FRAME_BYTES || length < PRELUDE_BYTES + CHECKSUM_BYTES) throw damaged();
  return length;
}

function dataOf(frame: Buffer): string | undefined {
  const end = frame.length - CHECKSUM_BYTES;
  if (zlib.crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end)) throw damaged();
  const headersEnd = PRELUDE_BYTES + frame.readUInt32BE(4);
  if (headersEnd > end) throw damaged();
  const headers = headersIn(frame.subarray(PRELUDE_BYTES, headersEnd));
  const payload = frame.toString("utf8", headersEnd, end);
  if (headers.get(":message-type") !== "event") throw failure(headers, payload);
  if (headers.get(":event-type") !== "chunk") return undefined;
  return Buffer.from(Chunk.parse(JSON.parse(payload)).bytes, "base64").toString("utf8");
}

function headersIn(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < bytes.length; ) {
    const nameEnd = at + 1 + bytes.readUInt8(at);
    if (bytes.readUInt8(nameEnd) !== TEXT) throw damaged();
    const valueStart = nameEnd + 3;
    const valueEnd = valueStart + bytes.readUInt16BE(nameEnd + 1);
    headers.set(bytes.toString("utf8", at + 1, nameEnd), bytes.toString("utf8", valueStart, valueEnd));
    at = valueEnd;
  }
  return headers;
}

const ErrorBody = z.object({ message: z.string() });

function failure(headers: ReadonlyMap<string, string>, payload: string): ProviderError {
  const type = headers.get(":exception-type") ?? headers.get(":error-code") ?? "internalServerException";
  const message = headers.get(":error-message") ?? wordsIn(payload);
  return new ProviderError("the stream ended with an error", { body: { type, message } });
}

function wordsIn(payload: string): string {
  try {
    return ErrorBody.parse(JSON.parse(payload)).message;
  } catch {
    return "";
  }
}

const damaged = () => new ProviderError("the stream contains a damaged frame");
