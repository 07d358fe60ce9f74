// The events of an answer's body in any form: server-sent events, AWS's frames, or JSON. The body decides by how it begins,
// as gateways label it wrongly.

import { isObject } from "../../../lib/json.ts";
import { sseParser } from "../../../lib/sse-parser.ts";
import { awsFrames } from "../aws-frames.ts";
import { ProviderError, refused } from "../failure.ts";
import type { ProviderEvent } from "../reply.ts";
import { errorIn } from "./error-shape.ts";

/** Maximum length of one event, or of an answer that is one event: parsing it takes one tick of the event loop. */
const MAX_EVENT_CHARS = 2 * 1024 * 1024;

export interface Listener {
  /** The listener ignores further events. */
  readonly ended: boolean;
  event(event: ProviderEvent): void;
  /** The stream says that it is over. */
  close(): void;
}

export interface Frames {
  /** Throws `ProviderError` for what is no event, and for errors that come as events. */
  push(bytes: Buffer): void;
  /** The body has come to a clean end. */
  end(): void;
}

/** `contentType`: of the answer. */
export function framesTo(listener: Listener, contentType: string): Frames {
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

/** Read off the first character that is no blank; undefined before it is there. */
function formOf(bytes: Buffer, listener: Listener, contentType: string): Frames | undefined {
  if (bytes[0] === GZIP) throw refused("the answer is compressed with gzip, and its headers do not say so");
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
  refused(`answered with ${contentType || "something"} instead of an event stream; check base_url`);

function serverSent(listener: Listener): Frames {
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
        // The last event may be incomplete. The reply decides whether it was needed.
        if (error instanceof ProviderError) throw error;
      }
    },
  };
}

/** Some servers write their errors beside the events: in a field of its own, or as bare JSON. */
function hearOther(line: string, listener: Listener): void {
  if (listener.ended) return;
  if (line.startsWith("error:")) throw failed(errorOf(line.slice("error:".length).trim()));
  if (/^\s*\{/.test(line)) hear(line, listener);
}

const END_OF_EVENT = Buffer.from("\n\n");

/** An answer that is JSON, or a line of JSON for each event. */
function json(listener: Listener, contentType: string): Frames {
  const pieces: Buffer[] = [];
  let length = 0;
  let isReply = false;
  const counting: Listener = {
    get ended() {
      return listener.ended;
    },
    event(event) {
      const [choice]: unknown[] = Array.isArray(event.choices) ? event.choices : [];
      isReply ||= choice !== undefined || typeof event.type === "string";
      listener.event(event);
      // A whole message that is complete as JSON needs no other end.
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

/** Passes on the data of one frame: one event, a list of events, or one event in each line. */
function hear(data: string, listener: Listener): void {
  if (listener.ended) return;
  const isPlain = data.charCodeAt(0) === BRACE;
  const text = isPlain ? data : bare(data);
  // Nearly every frame is an object, and every token is a frame.
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

function tell(value: unknown, listener: Listener): void {
  if (!isObject(value) && typeof value !== "string")
    throw new TypeError(`${JSON.stringify(value)} is no event.`);
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

/** Proxies wrap what is data already. */
const bare = (data: string) => data.replace(/^\uFEFF?\s*(?:data:\s*)*/, "").trimEnd();

/** Data without an event, which keeps the connection open; also a comment that a proxy has wrapped as data. */
const IDLE =
  /^(?::.*|null|""|\{\s*\}|\[\s*\]|\[?(?:ping|keep-?alive|heartbeat)\]?|(?:event|id|retry):.*)?$/is;
const DONE = /^"?\[?done\]?"?$/i;

/** Says that a text has several lines, and is no JSON as a whole. */
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

/** The data of an event that is called `error`. */
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
    throw new ProviderError("the stream holds something that is not one of its events", { cause });
  }
}
