// Makes one model call over HTTP. Sends the request, reads the complete reply, and closes or reuses the
// connection.

import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { decompress } from "../../lib/decompress.ts";
import { readWhile, release } from "../../lib/http-fetch.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import { AppError } from "../core/errors.ts";
import type { Usage } from "../core/message.ts";
import type { ModelReply, ModelRequest } from "../core/model.ts";
import type { DeltaSink, Stream } from "../core/stream.ts";
import { failureOf, ProviderError, refused } from "./failure.ts";
import { type FrameListener, framesTo } from "./reading/frames.ts";
import type { ReplyReader } from "./reply.ts";

/**
 * The maximum size of a reply, in bytes. It is four times the size of the longest possible reply, including
 * thoughts and framing.
 */
const MAX_REPLY_BYTES = 128 * 1024 * 1024;

export interface Exchange {
  readonly reader: ReplyReader;
  readonly deltas: DeltaSink | undefined;
  /** The API key, which must never appear in a message. */
  readonly secret?: string;
  /** Sends the request. See `Send`. */
  open(signal: AbortSignal): Promise<IncomingMessage>;
  /** The exchange for the rest of a reply that the provider paused. Its reader returns the whole reply. */
  next?(reply: ModelReply): Exchange | undefined;
}

/** All parts of a reply share one count of bytes. */
type Sized<T> = T & { readonly size: { bytes: number } };

/**
 * Yields the events of the reply that `deltas` does not take, and returns the complete reply. Destroys the
 * provider's socket immediately when the request's signal aborts or the stream returns early, even while
 * waiting for the provider.
 */
export function converse(request: ModelRequest, exchange: Exchange): Stream<ModelReply> {
  const controller = new AbortController();
  const stream = run(request, exchange, controller);
  const end = stream.return.bind(stream);
  // A generator handles `return` only after its current `await`, but the socket must close immediately.
  stream.return = (value) => {
    controller.abort();
    return end(value);
  };
  return stream;
}

async function* run(
  request: ModelRequest,
  exchange: Exchange,
  controller: AbortController,
): Stream<ModelReply> {
  let current = exchange;
  const size = { bytes: 0 };
  for (;;) {
    const reply = yield* oneExchange(request, { ...current, size }, controller);
    const next = current.next?.(reply);
    if (!next) return reply;
    current = next;
  }
}

async function* oneExchange(
  { model, signal, onPartialUsage }: ModelRequest,
  { reader, deltas, secret, size, open }: Sized<Exchange>,
  controller: AbortController,
): Stream<ModelReply> {
  let answer: IncomingMessage | undefined;
  let isRefused = false;
  let isWhole = false;
  const cut = () => controller.abort();
  signal.addEventListener("abort", cut, { once: true });
  controller.signal.addEventListener("abort", () => answer?.destroy(), { once: true });
  try {
    signal.throwIfAborted();
    answer = await open(controller.signal);
    const contentType = answer.headers["content-type"] ?? "";
    const reply = yield* read(decompress(answer), { reader, deltas, size, contentType }, controller.signal);
    isWhole = true;
    return reply;
  } catch (error) {
    isRefused = error instanceof ProviderError && error.body !== undefined;
    signal.throwIfAborted();
    if (controller.signal.aborted) throw new AppError("cancelled", "The model call was abandoned.");
    throw failureOf(error, { model: model.name, secret });
  } finally {
    signal.removeEventListener("abort", cut);
    if (answer && isWhole) release(answer);
    else {
      answer?.destroy();
      const { usage } = reader;
      // A provider may send the rejection of a request as the first event of a stream. If the request continues a
      // paused reply, the usage includes the reply so far.
      if ((answer && !isRefused) || isUsed(usage)) onPartialUsage?.(usage);
    }
  }
}

const isUsed = ({ input_tokens, output_tokens, web_searches = 0 }: Usage) =>
  input_tokens + output_tokens + web_searches > 0;

/**
 * Processes, in order, events that arrived together. Passes deltas to their sink in the same tick of the
 * event loop. Yields the deltas that the sink does not take, and then stops reading until the consumer
 * continues.
 */
async function* read(
  body: Readable,
  { reader, deltas, size, contentType }: Sized<Pick<Exchange, "reader" | "deltas">> & { contentType: string },
  signal: AbortSignal,
): Stream<ModelReply> {
  const events: StreamEvent[] = [];
  const frames = framesTo(listenerOf(reader, events), contentType);
  /** The events to yield. */
  let left: readonly StreamEvent[] = [];
  const show = () => {
    left = untaken(joined(events), deltas, signal);
    events.length = 0;
  };
  const takeIn = (piece: Buffer) => {
    size.bytes += piece.length;
    if (size.bytes > MAX_REPLY_BYTES) throw refused(`the stream is longer than ${MAX_REPLY_BYTES} bytes`);
    frames.push(piece);
    show();
    return left.length === 0 && !reader.ended;
  };
  for (let isOver = false; !isOver; isOver ||= reader.ended) {
    isOver = await readWhile(body, takeIn);
    if (isOver) {
      frames.end();
      show();
    }
    yield* offered(left, deltas, signal);
  }
  const reply = reader.finish(events);
  show();
  yield* offered(left, deltas, signal);
  return reply;
}

/** Ignores data after the end of the reply in the same packet. */
const listenerOf = (reader: ReplyReader, events: StreamEvent[]): FrameListener => ({
  get ended() {
    return reader.ended;
  },
  event: (event) => reader.take(event, events),
  close: () => reader.close(),
});

async function* offered(
  events: readonly StreamEvent[],
  deltas: DeltaSink | undefined,
  signal: AbortSignal,
): Stream<void> {
  for (const event of events) {
    if (!deltas?.(event)) yield event;
    signal.throwIfAborted();
  }
}

/** Returns the events starting with the first one that `deltas` does not take. */
function untaken(
  events: readonly StreamEvent[],
  deltas: DeltaSink | undefined,
  signal: AbortSignal,
): readonly StreamEvent[] {
  const at = events.findIndex((event) => signal.aborted || !deltas?.(event));
  return at < 0 ? [] : events.slice(at);
}

/** Merges pieces of text that arrive together into one event. Causes no delay. */
function joined(events: readonly StreamEvent[]): readonly StreamEvent[] {
  if (events.length < 2) return events;
  const result: StreamEvent[] = [];
  let text = "";
  const flush = () => {
    if (text !== "") result.push({ event: "on_chat_model_stream", data: { delta: text } });
    text = "";
  };
  for (const event of events) {
    if (event.event === "on_chat_model_stream" && "delta" in event.data) text += event.data.delta;
    else {
      flush();
      result.push(event);
    }
  }
  flush();
  return result;
}
