// One model call over HTTP: opens it, reads it to its end and leaves the connection as it should be.

import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { AppError } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { ModelReply, ModelRequest } from "../core/model.ts";
import type { DeltaSink, Stream } from "../core/stream.ts";
import { readCapped, readWhile, release } from "../lib/http-fetch.ts";
import { type SseParser, sseParser } from "../lib/sse-parser.ts";
import { awsFrames } from "./aws-frames.ts";
import { failureOf, ProviderError } from "./failure.ts";
import type { ReplyReader } from "./reply.ts";

/** A reply of the longest models, thoughts and framing included, is a quarter of that. */
const MAX_REPLY_BYTES = 128 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;

export interface Exchange {
  readonly reader: ReplyReader;
  readonly deltas: DeltaSink | undefined;
  /** Never to be shown. */
  readonly secret?: string;
  /** Sends the request; see `Send`. */
  open(signal: AbortSignal): Promise<IncomingMessage>;
}

/**
 * Yields the reply as it comes, where `deltas` does not take it, and returns it whole. The provider's socket is destroyed at once when the
 * request's signal aborts or the stream is returned early, also while it waits for the provider.
 */
export function converse(request: ModelRequest, exchange: Exchange): Stream<ModelReply> {
  const controller = new AbortController();
  const stream = run(request, exchange, controller);
  const end = stream.return.bind(stream);
  // A generator that awaits something takes a return only afterwards: the socket must not live until then.
  stream.return = (value) => {
    controller.abort();
    return end(value);
  };
  return stream;
}

async function* run(
  { model, signal, onPartialUsage }: ModelRequest,
  { reader, deltas, secret, open }: Exchange,
  controller: AbortController,
): Stream<ModelReply> {
  signal.throwIfAborted();
  let body: IncomingMessage | undefined;
  let isRefused = false;
  const cut = () => controller.abort();
  signal.addEventListener("abort", cut, { once: true });
  controller.signal.addEventListener("abort", () => body?.destroy(), { once: true });
  try {
    body = await checked(await open(controller.signal));
    return yield* read(body, { reader, deltas }, controller.signal);
  } catch (error) {
    isRefused = error instanceof ProviderError && error.body !== undefined;
    signal.throwIfAborted();
    if (controller.signal.aborted) throw new AppError("cancelled", "The model call was abandoned.");
    throw failureOf(error, { model: model.name, secret });
  } finally {
    signal.removeEventListener("abort", cut);
    if (body && reader.ended) release(body);
    else if (body) {
      body.destroy();
      const { usage } = reader;
      // A provider may send the refusal of a request as the first event of a stream.
      if (!isRefused || usage.input_tokens + usage.output_tokens > 0) onPartialUsage?.(usage);
    }
  }
}

/**
 * The events of what has arrived together come one after the other. Deltas go to their sink in the turn of the event loop that
 * brings them; what it does not take is yielded, and no more is read until then.
 */
async function* read(
  body: IncomingMessage,
  { reader, deltas }: Pick<Exchange, "reader" | "deltas">,
  signal: AbortSignal,
): Stream<ModelReply> {
  const events: StreamEvent[] = [];
  const take = (data: string) => reader.take(data, events);
  const isFramed = body.headers["content-type"]?.includes("vnd.amazon.eventstream");
  const parser = isFramed ? awsFrames(take) : sseParser(take);
  let bytes = 0;
  /** What is to be yielded. */
  let left: readonly StreamEvent[] = [];
  const takeIn = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > MAX_REPLY_BYTES)
      throw new ProviderError(`the stream is longer than ${MAX_REPLY_BYTES} bytes`);
    push(parser, piece);
    left = untaken(joined(events), deltas, signal);
    events.length = 0;
    return left.length === 0 && !reader.ended;
  };
  while (!reader.ended) {
    if (await readWhile(body, takeIn)) throw new ProviderError("the stream ended before the reply did");
    for (const event of left) {
      if (!deltas?.(event)) yield event;
      signal.throwIfAborted();
    }
  }
  return reader.finish();
}

/** The events from the first one on that `deltas` does not take. */
function untaken(
  events: readonly StreamEvent[],
  deltas: DeltaSink | undefined,
  signal: AbortSignal,
): readonly StreamEvent[] {
  const at = events.findIndex((event) => signal.aborted || !deltas?.(event));
  return at < 0 ? [] : events.slice(at);
}

/** Pieces of text that arrive together are shown together: one event instead of many, and none of it later. */
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

function push(parser: Pick<SseParser, "push">, chunk: Buffer): void {
  try {
    parser.push(chunk);
  } catch (cause) {
    if (cause instanceof ProviderError) throw cause;
    throw new ProviderError("the stream holds something that is not one of its events", { cause });
  }
}

/** Throws for an answer that is no event stream. */
async function checked(answer: IncomingMessage): Promise<IncomingMessage> {
  const type = answer.headers["content-type"] ?? "";
  if (!/json|html/.test(type)) return answer;
  const text = await readCapped(answer, MAX_ERROR_BYTES);
  const message = `answered with ${type} instead of an event stream; check base_url`;
  throw new ProviderError(message, { body: errorIn(text) ?? { code: 400, message } });
}

/** Some gateways send their errors with status 200. */
function errorIn(text: string): unknown {
  try {
    return z.object({ error: z.unknown() }).safeParse(JSON.parse(text)).data?.error;
  } catch {
    return undefined;
  }
}
