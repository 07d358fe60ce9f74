// Converts errors of SDKs, the network and streams to `AppError`s. The errors contain the provider's message, but never keys
// or addresses.

import { isIPv6 } from "node:net";
import { z } from "zod";
import { EncodingError } from "../../lib/decompress.ts";
import { unusedProxy } from "../../lib/http-fetch.ts";
import { isObject } from "../../lib/json.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { replacingAll } from "../../lib/replacer.ts";
import { firstChars } from "../../lib/text.ts";
import { AppError, type ErrorCode } from "../core/errors.ts";

/**
 * A failure that no SDK reports, such as one inside a stream. `body` is the provider's error in any format.
 * If neither `body` nor `refusal` is set, the stream itself is invalid.
 */
export class ProviderError extends Error {
  readonly body: unknown;
  readonly refusal: Refusal | undefined;

  constructor(
    message: string,
    { body, refusal, cause }: { body?: unknown; refusal?: Refusal; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ProviderError";
    this.body = body;
    this.refusal = refusal;
  }
}

/**
 * Returns a failure that a retry would not fix: a response of the wrong kind, or one that exceeds a limit.
 */
export const refused = (message: string) => new ProviderError(message, { body: { code: 400, message } });

/** A response with a status other than 2xx. */
interface Refusal {
  readonly status: number;
  readonly headers: Headers;
}

interface FailedRequest {
  /** `provider:model`, which the message names. */
  readonly model: string;
  /** The key that was sent. It must never appear in a message. */
  readonly secret?: string | undefined;
}

/** Converts any error of a model call to an `AppError`. */
export function failureOf(error: unknown, { model, secret }: FailedRequest): AppError {
  if (error instanceof AppError) return error;
  const facts = factsOf(error);
  if (!facts) return AppError.from(error);
  const code = codeOf(facts);
  const status = facts.status ? ` (${facts.status})` : "";
  const said = redact(shorten(facts.message), secret);
  const words = withoutAddresses(said);
  const proxy = code === "model_unreachable" && facts.status === undefined && unusedProxy(process.env);
  const hint = proxy ? ` (${proxy})` : "";
  return new AppError(
    code,
    `The provider of \`${model}\` ${SAYS[code]}${status}${words && `: ${words}`}${hint}`,
    {
      details: {
        ...(facts.status ? { status: facts.status } : {}),
        ...(retryAfter(facts.headers) ?? retryInfo(facts.whole)),
        ...requestId(facts.headers),
      },
      // The cause is for the log. A provider's own error may contain a key, but network errors do not.
      ...causeOf(facts.status === undefined ? error : said !== words && new Error(said)),
    },
  );
}

const causeOf = (cause: unknown) => (cause ? { cause } : {});

const SAYS = {
  model_auth: "rejected the API key or the account",
  model_rejected: "rejected the request",
  context_overflow: "does not accept a conversation of this length",
  model_rate_limited: "limited the request rate",
  model_overloaded: "is overloaded or failing",
  model_timeout: "did not respond in time",
  model_unreachable: "could not be reached or closed the connection",
} satisfies Partial<Record<ErrorCode, string>>;

/**
 * Messages that servers send about a conversation that is too long. They are matched against the whole error.
 */
const OVERFLOW: readonly RegExp[] = [
  // Most messages contain the word "context" and a problem with its length, in either order.
  /context[ _-]?(window|length|size|limit)\b.{0,60}?(exceed|overflow|\bfull\b|too (small|long)|reached|is only)/is,
  /(exceed|overflow|longer than|larger than|greater than|too (long|large|big)).{0,80}?\bcontext[ _-]?(window|length|size|limit)\b/is,
  /context_length_exceeded|exceed_context_size|maximum context length|ContextWindowExceeded|context overflow/i,
  /(prompt|input|request) (is )?too long\b/i, // Anthropic, Ollama, Bedrock
  /(prompt|input)( tokens?)?( length| count)?( of)?( \(?[\d,]+( tokens)?\)?)? exceeds? .{0,30}?\b(max(imum)?|limit)\b/i, // Gemini, Z.ai, SGLang
  /request payload size exceeds the limit/i, // Gemini
  /longer than the maximum model length|maximum prompt length/i, // vLLM, xAI
  /reduce the length of (the|your) (messages|prompt|input)/i, // Groq, Cerebras
  /tokens \+ `?max_new_tokens`? must be <=/i, // Together
  /exceeded (model token limit|max context length)/i, // Moonshot, Ollama
];

/** Error types and codes that arrive without a status, or that are more specific than the status. */
const TYPES: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  api_error: 500,
  server_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
  // Bedrock, sent as frames of a stream
  validationException: 400,
  throttlingException: 429,
  modelStreamErrorException: 500,
  internalServerException: 500,
  // Google
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
  // Moonshot
  invalid_authentication_error: 401,
  exceeded_current_quota_error: 402,
  rate_limit_reached_error: 429,
  engine_overloaded_error: 529,
  // llama.cpp
  exceed_context_size_error: 400,
  unavailable_error: 503,
  serviceUnavailableException: 503,
  modelTimeoutException: 504,
};

const STATUSES: Readonly<Record<number, keyof typeof SAYS>> = {
  401: "model_auth",
  402: "model_auth",
  403: "model_auth",
  408: "model_timeout",
  409: "model_overloaded", // a lock that timed out; both SDKs repeat it
  413: "context_overflow",
  429: "model_rate_limited",
};

interface Facts {
  /**
   * Undefined if no response arrived or the stream broke. In this case, none of these texts comes from the
   * provider.
   */
  readonly status: number | undefined;
  readonly headers?: Headers | undefined;
  /** The provider's code and type. */
  readonly types: readonly string[];
  readonly message: string;
  /** The complete text from the provider or the network. */
  readonly whole: string;
}

function codeOf({ status, types, whole }: Facts): keyof typeof SAYS {
  if (status === undefined && /could not load (the default )?credentials/i.test(whole)) return "model_auth";
  if (status === undefined) return /timed? ?out/i.test(whole) ? "model_timeout" : "model_unreachable";
  // An exhausted quota looks like a rate limit, but waiting does not help.
  if (types.includes("insufficient_quota")) return "model_auth";
  if (/API_KEY_INVALID|API key not valid|login fail/.test(whole)) return "model_auth"; // Gemini with status 400, MiniMax
  if (status !== 429 && OVERFLOW.some((pattern) => pattern.test(whole))) return "context_overflow";
  return STATUSES[status] ?? (status >= 500 ? "model_overloaded" : "model_rejected");
}

const Word = z.union([z.string(), z.number()]).transform(String).optional().catch(undefined);
const ErrorWords = z.object({ message: Word, type: Word, code: Word, status: Word });
/** The errors of both SDKs, which have the same format because the same company generates them. */
const Thrown = z.object({
  status: z.number(),
  // Checked lazily because `Headers` belongs to Node's own fetch, which is loaded only for an error.
  headers: z.custom<Headers>((value) => value instanceof Headers).optional(),
  error: z.unknown(),
});

function factsOf(error: unknown): Facts | undefined {
  if (error instanceof EncodingError) return factsOf(refused(`the answer ${error.message}`));
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ProviderError)
    return error.body === undefined && !error.refusal
      ? broken(message)
      : { ...said(error.body, message), ...error.refusal };
  const thrown = Thrown.safeParse(error).data;
  if (thrown) return { ...said(thrown.error, message), ...thrown };
  return error instanceof Error && !isBug(error) ? disconnected(innermost(error)) : undefined;
}

const broken = (message: string): Facts => ({ status: undefined, types: [], message, whole: message });

/**
 * Returns the known details of a network failure. Uses only the error's code, because its message may contain
 * the host.
 */
function disconnected(error: Error): Facts {
  const { code } = z.object({ code: z.string().regex(/^[A-Z\d_]+$/) }).safeParse(error).data ?? {};
  return { ...broken(code ?? ""), whole: error.message };
}

function said(body: unknown, fallback: string): Facts & { status: number } {
  const { message = fallback, type, code, status: word } = wordsOf(body);
  const types = [code, type, word].filter((each) => each !== undefined);
  const statuses = types.map((word) => TYPES[word] ?? Number(word));
  const status = statuses.find((number) => number >= 400 && number < 600) ?? 500;
  return { status, types, message, whole: `${fallback} ${JSON.stringify(body)}` };
}

/**
 * Returns the fields of a provider's error. Anthropic sends `{error: {type, message}}`, and OpenAI sends the
 * inner object. Other providers send a flat object, a string, a list with one element, or other names.
 */
function wordsOf(body: unknown): z.infer<typeof ErrorWords> {
  if (typeof body === "string") return { message: body };
  if (Array.isArray(body)) return wordsOf(body[0]);
  if (!isObject(body)) return {};
  const inner = body.error ?? body.errors ?? (typeof body.message === "string" ? undefined : body.detail);
  if (inner) return { ...flat(body), ...omitUndefined(wordsOf(inner)) };
  return flat(body);
}

const flat = (body: Readonly<Record<string, unknown>>) =>
  ErrorWords.parse({
    message: body.message ?? body.msg ?? body.error_msg ?? body.error_message ?? body.status_msg,
    type: body.type,
    code: body.code ?? body.error_code ?? body.status_code,
    status: body.status,
  });

/** True for kinds of errors that indicate a bug rather than a network failure. */
const isBug = (error: Error) =>
  [TypeError, RangeError, ReferenceError, SyntaxError].some((kind) => error instanceof kind);

function innermost(error: Error): Error {
  return error.cause instanceof Error ? innermost(error.cause) : error;
}

function shorten(message: string): string {
  if (/<html|<!doctype/i.test(message)) return "";
  const flat = message.replace(/\s+/g, " ").trim();
  return flat.length > 500 ? `${firstChars(flat, 500)}…` : flat;
}

/** Removes the key that was sent and any text that looks like a key. */
function redact(message: string, secret: string | undefined): string {
  const known = secret && secret.length >= 8 ? replacingAll(new Map([[secret, "[key]"]]))(message) : message;
  return known
    .replace(/\bBearer\s+\S+/gi, "Bearer [key]")
    .replace(/\b(sk|pk|rk|gsk|csk|xai|tgp|hf|nvapi|key)[-_][\w*.-]{6,}/gi, "[key]");
}

const ADDRESSES: readonly RegExp[] = [
  /(?:\b[a-z][a-z\d+.-]*:)?\/\/[^\s"'<>]+/gi, // URLs
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, // IPv4
  /\b[a-z\d-]+(?:\.[a-z\d-]+)+:\d{2,5}\b|\b[a-z][a-z\d-]*:\d{4,5}\b/gi, // a name with a port
  // A name that only a private network can resolve.
  /\b(?:[a-z\d-]+\.)+(?:internal|local|localdomain|lan|corp|home|intranet|private|invalid|test|svc)\b/gi,
];

/** Removes details of the operator's network. */
function withoutAddresses(message: string): string {
  const left = ADDRESSES.reduce((text, pattern) => text.replace(pattern, "[address]"), message);
  return left.replace(/[\da-f:]{2,}/gi, (text) => (isIPv6(text) ? "[address]" : text));
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** Returns the wait that the provider requests, up to one day. */
function retryAfter(headers: Headers | undefined): { retry_after_ms: number } | undefined {
  const milliseconds = Number.parseFloat(headers?.get("retry-after-ms") ?? "");
  const value = headers?.get("retry-after") ?? "";
  const date = /[a-z]/i.test(value) ? Date.parse(value) - Date.now() : Number.NaN;
  const seconds = /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) * 1000 : date;
  const wait = Number.isFinite(milliseconds) ? milliseconds : seconds;
  return Number.isFinite(wait) ? { retry_after_ms: atMostADay(wait) } : undefined;
}

/** Reads the wait from the body, where Google puts it in seconds. */
function retryInfo(said: string): { retry_after_ms?: number } {
  const [, seconds] = /"retryDelay":"(\d+(?:\.\d+)?)s"/.exec(said) ?? [];
  return seconds === undefined ? {} : { retry_after_ms: atMostADay(Number(seconds) * 1000) };
}

const atMostADay = (ms: number) => Math.round(Math.min(Math.max(ms, 0), DAY_MS));

function requestId(headers: Headers | undefined): { request_id?: string } {
  const id = headers?.get("request-id") ?? headers?.get("x-request-id") ?? headers?.get("x-amzn-requestid");
  return id ? { request_id: id } : {};
}
