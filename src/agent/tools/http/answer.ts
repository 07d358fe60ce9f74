// Converts the response of a tool's server to the result of the call.

import { jsonSize } from "../../../lib/json.ts";
import { FetchError } from "../../../lib/ssrf-safe-fetch/dial.ts";
import type { PublicResponse } from "../../../lib/ssrf-safe-fetch/index.ts";
import { firstChars } from "../../../lib/text.ts";
import { isTickSpent, sharedTick } from "../../../lib/ticks.ts";
import { replyResult, replyText } from "../../core/delivered-result.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Stream } from "../../core/stream.ts";
import { done, failed, type ToolResult } from "../../core/tool.ts";
import { streamOf } from "./stream.ts";

const MAX_RESULT_BYTES = 1024 * 1024;
/** The maximum size of a stream, including all progress, in bytes. */
const MAX_STREAM_BYTES = 4 * MAX_RESULT_BYTES;
/** The maximum number of keys and values in a JSON text. */
const MAX_ENTRIES = 20_000;
const MAX_ERROR_BYTES = 64 * 1024;
/** The maximum number of characters in a failed call's error text. */
const MAX_ERROR_CHARS = 2000;
/** The maximum number of progress updates per call. Further updates are not shown. */
const MAX_PROGRESS = 1000;

/** `deferred`: the result arrives later. `refused`: a status after which another attempt may succeed. */
export type EndpointReply =
  | { readonly kind: "result"; readonly result: ToolResult; readonly failure?: EndpointFailure }
  | { readonly kind: "deferred" }
  | {
      readonly kind: "refused";
      readonly result: ToolResult;
      readonly failure: EndpointFailure;
      readonly retryAfterMs: number | undefined;
    };

/**
 * Why the endpoint did not execute a call. The reason appears in the log, so it contains no text from the
 * endpoint.
 */
export interface EndpointFailure {
  /** `http_` followed by the status, `timeout`, or the kind of failure of the request. */
  readonly code: string;
  readonly message: string;
  readonly cause?: unknown;
}

/**
 * Reads the response. Yields the server's progress. Throws a `FetchError`. Long tasks take turns with those
 * of other tenants.
 */
export async function* answerOf(
  response: PublicResponse,
  call: ToolCall,
  tenant: string,
): Stream<EndpointReply> {
  const { status } = response;
  if (status === 202) return { kind: "deferred" };
  if (status === 204) return settled(done("The tool finished without output."));
  if (status >= 200 && status < 300) return settled(yield* readResult(response, call, tenant));
  const result = failed(await refusal(response));
  const failure = { code: `http_${status}`, message: `It returned HTTP ${status}.` };
  if (!MAY_PASS.has(status)) return { kind: "result", result, failure };
  return { kind: "refused", result, failure, retryAfterMs: retryAfter(response.headers["retry-after"]) };
}

const settled = (result: ToolResult): EndpointReply => ({ kind: "result", result });

/** Statuses that are unrelated to the call itself. */
const MAY_PASS: ReadonlySet<number> = new Set([408, 425, 429, 502, 503, 504]);

async function* readResult(response: PublicResponse, call: ToolCall, tenant: string): Stream<ToolResult> {
  const mediaType = mediaTypeOf(response);
  const stream = streamOf(mediaType, MAX_RESULT_BYTES);
  if (stream) return yield* readStream(stream(response.read(MAX_STREAM_BYTES)), call, tenant);
  if (!isJson(mediaType))
    throw new FetchError("unreadable", `the response is ${shown(mediaType)}, not application/json`);
  const reply = parsed(await textOf(response, MAX_RESULT_BYTES));
  const result = replyResult(reply);
  if (!result) throw new FetchError("unreadable", "the response has neither a `result` nor an `error`");
  return result;
}

/** Reads any number of `{progress}` values, then `{result}` or `{error}`. Skips other values. */
async function* readStream(
  texts: AsyncGenerator<string>,
  call: ToolCall,
  tenant: string,
): Stream<ToolResult> {
  let told = 0;
  for await (const text of texts) {
    if (isTickSpent()) await sharedTick(tenant);
    const reply = parsed(text);
    const result = replyResult(reply);
    if (result) return result;
    if (typeof reply !== "object" || reply === null || !("progress" in reply)) continue;
    if (++told > MAX_PROGRESS) continue;
    const output = replyText(reply.progress);
    yield { event: "on_tool_progress", name: call.name, data: { call_id: call.id, output } };
  }
  throw new FetchError("broken", "the response ended without a `result` or an `error`");
}

/**
 * Counts keys before parsing, because parsing one MiB of keys takes a tenth of a second. The keys in the body
 * of a late result are counted in the same way.
 */
function parsed(text: string): unknown {
  const { entries } = jsonSize(Buffer.from(text));
  if (entries > MAX_ENTRIES)
    throw new FetchError(
      "unreadable",
      `the response has ${entries} keys and values; at most ${MAX_ENTRIES} are allowed`,
    );
  try {
    return JSON.parse(text);
  } catch {
    throw new FetchError("unreadable", "the response is not valid JSON");
  }
}

/** Returns the server's message about its failure, or only the status. */
async function refusal(response: PublicResponse): Promise<string> {
  const { status } = response;
  if (status >= 300 && status < 400)
    return `The tool's server returned a redirect (HTTP ${status}). Redirects are not followed.`;
  const said = isJson(mediaTypeOf(response)) ? await saidError(response) : "";
  return `The tool's server returned HTTP ${status}${said && `: ${said}`}`;
}

async function saidError(response: PublicResponse): Promise<string> {
  try {
    const reply: unknown = JSON.parse(await textOf(response, MAX_ERROR_BYTES));
    const isObject = typeof reply === "object" && reply !== null;
    return isObject && "error" in reply ? firstChars(replyText(reply.error), MAX_ERROR_CHARS) : "";
  } catch (error) {
    if (error instanceof FetchError || error instanceof SyntaxError) return "";
    throw error;
  }
}

async function textOf(response: PublicResponse, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.read(maxBytes)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** Returns the media type of a response. A response without a content type counts as JSON. */
const mediaTypeOf = ({ headers }: PublicResponse) =>
  (headers["content-type"] ?? "application/json").split(";", 1).join().trim().toLowerCase();

const isJson = (mediaType: string) => mediaType === "application/json" || mediaType.endsWith("+json");

const shown = (mediaType: string) =>
  /^[\w.+-]{1,50}\/[\w.+-]{1,50}$/.test(mediaType) ? mediaType : "something";

/** Converts the header's value, in seconds or as a date, to milliseconds. */
function retryAfter(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
