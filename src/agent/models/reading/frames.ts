// Reads the events in a response body of any format: server-sent events, AWS frames or JSON. The beginning of the body
// determines the format, because some gateways send wrong content types.

import { isObject } from "../../../lib/json.ts";
import { sseParser } from "../../../lib/sse-parser.ts";
import { awsFrames } from "../aws-frames.ts";
import { ProviderError, refused } from "../failure.ts";
import type { ProviderEvent } from "../reply.ts";
import { errorIn } from "./error-shape.ts";

/**
 * The maximum length of one event, or of a response that is one event. An event is parsed in one tick, which
 * blocks the event loop.
 */
const MAX_EVENT_CHARS = 2 * 1024 * 1024;

export interface FrameListener {
  /** True if the listener ignores further events. */
  readonly ended: boolean;
  event(event: ProviderEvent): void;
  /** Records that the stream has announced its end. */
  close(): void;
}

export interface Frames {
  /** Throws `ProviderError` for invalid events, and for errors that arrive as events. */
  push(bytes: Buffer): void;
  /** Records that the body has ended cleanly. */
  end(): void;
}

/** Returns a reader for a response body. `contentType` is the content type of the response. */
export function framesTo(listener: FrameListener, contentType: string): Frames {
  if (contentType.includes("vnd.amazon.eventstream")) {
    const frames = awsFrames((data) => hear(data, listener));
    return { push: (bytes) => understood(() => frames.push(bytes)), end: () => {} };
  }
  let form: Frames | undefined;
  return {
    push(bytes) {
      form ??= formOf(bytes, listener, contentType);
      form?.push(bytes);
    },
    end: () => form?.end(),
  };
}

/**
 * Detects the format from the first character that is not white space. Returns undefined until that character
 * has arrived.
 */
function formOf(bytes: Buffer, listener: FrameListener, contentType: string): Frames | undefined {
  if (bytes[0] === GZIP) throw refused("the response is compressed with gzip, but its headers do not say so");
  const first = bytes.find((byte) => byte > 0x20 && !BYTE_ORDER_MARK.includes(byte));
  if (first === undefined) return undefined;
  const sign = String.fromCharCode(first);
  if (sign === "{" || sign === "[") return json(listener, contentType);
  if (sign === "<") throw noEvents(contentType);
  return serverSent(listener);
}

const GZIP = 0x1f;
const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];

const noEvents = (contentType: string) =>
  refused(`returned ${contentType || "an unknown type"} instead of an event stream; check base_url`);

function serverSent(listener: FrameListener): Frames {
  const parser = sseParser(
    (data, name) => {
      if (name === "error") throw failed(errorOf(data));
      hear(data, listener);
    },
    { maxLength: MAX_EVENT_CHARS, onOther: (line) => hearOther(line, listener) },
  );
  return {
    push: (bytes) => understood(() => parser.push(bytes)),
    end() {
      try {
        parser.push(END_OF_EVENT);
      } catch (error) {
        // The last event may be incomplete. The reader of the reply decides whether the reply is complete
        // without it.
        if (error instanceof ProviderError) throw error;
      }
    },
  };
}

/** Some servers write errors outside the events: in a separate field, or as bare JSON. */
function hearOther(line: string, listener: FrameListener): void {
  if (listener.ended) return;
  if (line.startsWith("error:")) throw failed(errorOf(line.slice("error:".length).trim()));
  if (/^\s*\{/.test(line)) hear(line, listener);
}

const END_OF_EVENT = Buffer.from("\n\n");

/** Reads a response that is JSON, or that has one line of JSON per event. */
function json(listener: FrameListener, contentType: string): Frames {
  const pieces: Buffer[] = [];
  let length = 0;
  let isReply = false;
  const counting: FrameListener = {
    get ended() {
      return listener.ended;
    },
    event(event) {
      const [choice]: unknown[] = Array.isArray(event.choices) ? event.choices : [];
      isReply ||= choice !== undefined || typeof event.type === "string";
      listener.event(event);
      // A complete message in valid JSON needs no other end.
      if (isObject(choice) && isObject(choice.message)) listener.close();
    },
    close: () => listener.close(),
  };
  return {
    push(bytes) {
      pieces.push(bytes);
      length += bytes.length;
      if (length > MAX_EVENT_CHARS) throw refused(`the answer is JSON of more than ${MAX_EVENT_CHARS} bytes`);
    },
    end() {
      understood(() => hear(Buffer.concat(pieces).toString("utf8"), counting));
      if (!isReply) throw noEvents(contentType);
    },
  };
}

/** Passes on the data of one frame: one event, a list of events, or one event per line. */
function hear(data: string, listener: FrameListener): void {
  if (listener.ended) return;
  const isPlain = data.charCodeAt(0) === BRACE;
  const text = isPlain ? data : bare(data);
  // This is a fast path, because nearly every frame is an object and every token is a frame.
  if (!isPlain && IDLE.test(text)) return;
  if (!isPlain && DONE.test(text)) {
    listener.close();
    return;
  }
  const value = valueIn(text);
  if (value === LINES) for (const line of text.split("\n")) hear(line, listener);
  else if (Array.isArray(value)) for (const event of value) tell(event, listener);
  else tell(value, listener);
}

function tell(value: unknown, listener: FrameListener): void {
  if (!isObject(value) && typeof value !== "string")
    throw new TypeError(`${JSON.stringify(value)} is not an event.`);
  if (isObject(value) && isEmpty(value)) return;
  const event = isObject(value) ? value : { error: value };
  const error = errorIn(event);
  if (error !== undefined) throw failed(error);
  listener.event(event);
}

const BRACE = 0x7b;

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** Removes the `data:` prefix that proxies add to existing data. */
const bare = (data: string) => data.replace(/^\uFEFF?\s*(?:data:\s*)*/, "").trimEnd();

/**
 * Data that only keeps the connection open and contains no event, including comments that a proxy has wrapped
 * as data.
 */
const IDLE =
  /^(?::.*|null|""|\{\s*\}|\[\s*\]|\[?(?:ping|keep-?alive|heartbeat)\]?|(?:event|id|retry):.*)?$/is;
const DONE = /^"?\[?done\]?"?$/i;

/** Marks data that has several lines and is not valid JSON as a whole. */
const LINES = Symbol("lines");

function valueIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (text.includes("\n")) return LINES;
    throw error;
  }
}

const failed = (body: unknown) => new ProviderError("the stream ended with an error", { body });

/** Returns the data of an event named `error`. */
function errorOf(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

function understood(read: () => void): void {
  try {
    read();
  } catch (cause) {
    if (cause instanceof ProviderError) throw cause;
    throw new ProviderError("the stream contains an invalid event", { cause });
  }
}
