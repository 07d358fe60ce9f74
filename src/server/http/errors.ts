// Sends errors as RFC 9457 problem+json with Skein's error code. No other file maps codes to statuses.

import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { AppError, type ErrorCode } from "../../agent/core/errors.ts";
import { exhausted } from "../../agent/core/failures.ts";
import { isClientDisconnect } from "./client-disconnect.ts";
import { errorPage } from "./error-page.ts";
import type { Problem } from "./schemas.ts";

const STATUS: Record<ErrorCode, number> = {
  invalid_request: 400,
  unauthorized: 401,
  credentials_expired: 401,
  credentials_revoked: 401,
  forbidden: 403,
  not_found: 404,
  not_recorded: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  payload_too_large: 413,
  unsupported_media_type: 415,
  range_not_satisfiable: 416,
  already_exists: 409,
  precondition_failed: 412,
  thread_busy: 409,
  queue_full: 429,
  limit_exceeded: 429,
  run_not_active: 409,
  events_expired: 410,
  interrupt_closed: 409,
  model_auth: 502,
  model_rejected: 502,
  model_rate_limited: 503,
  model_overloaded: 503,
  model_unreachable: 502,
  model_timeout: 504,
  context_overflow: 502,
  cancelled: 409,
  max_iterations: 500,
  run_aborted: 500,
  hook_failed: 500,
  output_invalid: 500,
  crashed_too_often: 500,
  lease_lost: 500,
  backend_failed: 502,
  backend_refused: 403,
  config_invalid: 500,
  unavailable: 503,
  shutting_down: 503,
  internal: 500,
};

export const statusOf = (code: ErrorCode): number => STATUS[code];

/** The errors that Fastify itself throws, by their codes. */
const FASTIFY: Readonly<Record<string, [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_JSON_BODY: ["invalid_request", "The body is not valid JSON."],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["invalid_request", "The body is empty. Send a JSON object."],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "unsupported_media_type",
    "The body must be JSON. Send it with `Content-Type: application/json`.",
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    "invalid_request",
    "The length of the body differs from the header `Content-Length`.",
  ],
  FST_ERR_BAD_URL: ["invalid_request", "The URL is malformed."],
  FST_ERR_MAX_PARAM_LENGTH: ["not_found", "A segment of the path is longer than any id."],
};

/** The body of an error response. */
export function problem(error: AppError, instance: string, request_id: string): z.infer<typeof Problem> {
  return {
    type: errorPage(error.code),
    title: error.code.replaceAll("_", " "),
    status: STATUS[error.code],
    code: error.code,
    detail: error.message,
    instance,
    request_id,
    ...(error.details === undefined ? {} : { details: error.details }),
  };
}

/** Sends an error that was thrown before the response started. */
export function sendProblem(thrown: FastifyError | Error, request: FastifyRequest, reply: FastifyReply) {
  const body = refuse(thrown, request, reply);
  return reply.type("application/problem+json").send(JSON.stringify(body));
}

/** Logs a failure, sets the status and the headers of the refusal, and returns the response body. */
export function refuse(
  thrown: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
): z.infer<typeof Problem> {
  const error = fromFastify(thrown, request);
  const status = STATUS[error.code];
  // While a store is unreachable, thousands of requests may fail, so each gets one line without a stack.
  if (error.code === "unavailable") request.log.warn({ reason: reasonOf(error) }, "request refused");
  // Clients expect this error.
  else if (error.code === "shutting_down") request.log.info({ reason: error.message }, "request refused");
  // `reportLacks` has already counted it.
  else if (status >= 500 && exhausted(thrown) === undefined)
    request.log.error({ err: thrown }, "request failed");
  const retry = error.details?.retry_after_ms;
  if (typeof retry === "number") reply.header("retry-after", Math.max(1, Math.ceil(retry / 1000)));
  else if (status === 503) reply.header("retry-after", 1);
  // For a malformed URL, Fastify runs no hooks.
  reply.header("x-request-id", request.id);
  // Otherwise, the server would read the rest of the body as another request, or refuse the next request too.
  if (status === 408 || error.code === "shutting_down") reply.header("connection", "close");
  if (status === 401) reply.header("www-authenticate", 'Bearer realm="skein"');
  // Omits the query, which may contain a ticket.
  const [path = "/"] = request.url.split("?");
  reply.code(status);
  return problem(error, path, request.id);
}

/** Returns the message of an error, followed by the messages of its causes. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message} (${reasonOf(cause)})` : message;
}

type Refusal = readonly [status: number, code: ErrorCode, title: string, detail: string];
const UNREADABLE: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    "invalid_request",
    "headers too large",
    "The headers are larger than this server accepts.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    408,
    "request_timeout",
    "request timeout",
    "The request's headers took too long to arrive.",
  ],
};
const TUNNEL: Refusal = [
  405,
  "method_not_allowed",
  "method not allowed",
  "This server is not a proxy: it does not accept CONNECT.",
];
const EXPECTATION: Refusal = [
  417,
  "invalid_request",
  "expectation failed",
  "The header `Expect` has an unknown value. Only `100-continue` is supported.",
];
const NO_REQUEST: Refusal = [400, "invalid_request", "invalid request", "This is not a valid HTTP request."];

/** Responds to bytes that are not an HTTP request, and closes the connection. */
export function refuseConnection(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) return;
  // The client would mistake a refusal for part of an earlier response, or for the response to another request.
  if (socket.bytesWritten > 0) {
    socket.destroySoon();
    return;
  }
  refuseOn(socket, UNREADABLE[error.code ?? ""] ?? NO_REQUEST);
}

/** Responds to requests that Node would answer without a body or not at all, and closes their connections. */
export function refuseOddRequests(server: Server): void {
  server.on("connect", (_request, socket) => refuseOn(socket, TUNNEL));
  server.on("checkExpectation", ({ socket }) => refuseOn(socket, EXPECTATION));
}

function refuseOn(socket: Duplex, [status, code, title, detail]: Refusal): void {
  const body = JSON.stringify({ type: errorPage(code), title, status, code, detail, instance: "" });
  const head = `HTTP/1.1 ${status} ${title}\r\nContent-Type: application/problem+json\r\nConnection: close`;
  socket.end(`${head}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}

const tooLarge = (limit: number | undefined) =>
  `The body is larger than the limit of this route${limit === undefined ? "" : `, ${limit} bytes`}.`;

/** Returns the error for the client. Also converts the errors of Fastify's parsers. */
export function fromFastify(thrown: FastifyError | Error, { routeOptions }: FastifyRequest): AppError {
  if (thrown instanceof AppError) return thrown;
  if (isClientDisconnect(thrown)) return new AppError("cancelled", thrown.message);
  const code = "code" in thrown ? thrown.code : undefined;
  const known = code === undefined ? undefined : FASTIFY[code];
  if (known) return new AppError(known[0], known[1], { cause: thrown });
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new AppError("payload_too_large", tooLarge(routeOptions.bodyLimit), { cause: thrown });
  if ("statusCode" in thrown && thrown.statusCode === 400)
    return new AppError("invalid_request", thrown.message, { cause: thrown });
  return AppError.from(thrown);
}
