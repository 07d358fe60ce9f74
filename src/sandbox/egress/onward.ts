// Streams a request to its host, and streams the answer back.

import type { ClientRequest, Agent as HttpAgent, IncomingMessage, ServerResponse } from "node:http";
import { type Duplex, pipeline, Transform } from "node:stream";
import type { StreamReplacer } from "../../lib/replacer.ts";

const { Agent, request } = process.getBuiltinModule("node:http");

const MAX_HEADER_BYTES = 32 * 1024;

/** Headers that concern only one connection and must not be passed on (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set(
  "connection expect keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split(
    " ",
  ),
);

/** Returns a message's headers for the next connection, without the headers in `more`. */
export function passedOn(rawHeaders: readonly string[], more: ReadonlySet<string> = NONE): string[] {
  return rawHeaders.filter((_, at) => {
    const name = rawHeaders[at - (at % 2)]?.toLowerCase() ?? "";
    return !HOP_BY_HOP.has(name) && !more.has(name);
  });
}
const NONE: ReadonlySet<string> = new Set();

export interface Refusal {
  readonly status: string;
  readonly words: string;
}

/** Thrown when an agent could not connect. */
export class RefusedConnection extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal.words);
    this.refusal = refusal;
  }
}

export const REFUSAL_HEADERS = ["Content-Type: text/plain", "Connection: close"];
export const FORBIDDEN = "403 Forbidden";
export const BAD_GATEWAY = "502 Bad Gateway";
export const UNREACHABLE: Refusal = { status: BAD_GATEWAY, words: "The host cannot be reached.\n" };

export function refuse(answer: ServerResponse, { status, words }: Refusal): void {
  answer.writeHead(
    Number(status.slice(0, 3)),
    REFUSAL_HEADERS.flatMap((header) => header.split(": ")),
  );
  answer.end(words);
}

/** Replaces texts in an answer. */
export interface AnswerMask {
  (text: string): string;
  inPieces(): StreamReplacer;
}

export interface ForwardedRequest {
  /** A connection that this request alone owns, or an agent with connections for several requests. */
  readonly via: Duplex | HttpAgent;
  readonly path: string;
  /** The headers, except headers that concern only the connection. */
  readonly headers: readonly string[];
  /** The mask to apply to the headers and the body of the answer. */
  readonly mask?: AnswerMask | undefined;
  /** Additional headers for the response. */
  readonly answered: readonly string[];
}

/** Answers the request `asked`. */
export function passOn(asked: IncomingMessage, answer: ServerResponse, forwarded: ForwardedRequest): void {
  const { via, path, headers } = forwarded;
  const sent = request({
    ...(via instanceof Agent ? { agent: via } : { createConnection: () => via }),
    method: asked.method,
    path,
    headers: [...headers, ...lengthOf(asked)],
    setHost: false,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  // This has no effect once the answer has been read.
  answer.once("close", () => sent.destroy());
  sent.once("response", (response) => {
    try {
      answerWith(response, answer, forwarded);
    } catch {
      // Node can read some heads that it then refuses to write. Without this `catch`, the error would end the
      // process.
      response.destroy();
      answer.destroy();
    }
  });
  refuseOnError(sent, answer);
  pipeline(asked, sent, () => {});
}

function refuseOnError(sent: ClientRequest, answer: ServerResponse): void {
  sent.once("error", (error) => {
    if (answer.headersSent) answer.destroy();
    else refuse(answer, error instanceof RefusedConnection ? error.refusal : UNREACHABLE);
  });
}

/**
 * Returns the length header. A request without a body gets a length of 0, because Node would otherwise send
 * an empty body in chunks.
 */
const lengthOf = ({ method = "", headers }: IncomingMessage): string[] =>
  /^(?:POST|PUT|PATCH)$/.test(method) &&
  headers["content-length"] === undefined &&
  headers["transfer-encoding"] === undefined
    ? ["Content-Length", "0"]
    : [];

const LENGTH: ReadonlySet<string> = new Set(["content-length"]);

/**
 * Sends the answer. The reason phrase after the status is not passed on, because it comes from the host and could contain a
 * secret or control characters.
 */
function answerWith(
  response: IncomingMessage,
  answer: ServerResponse,
  { mask, answered }: Pick<ForwardedRequest, "mask" | "answered">,
): void {
  const { statusCode = 0 } = response;
  if (statusCode < 200 || statusCode > 999) {
    response.destroy();
    refuse(answer, UNREACHABLE);
  } else if (mask) answerMasked(response, answer, { mask, answered, statusCode });
  else {
    answer.writeHead(statusCode, [...passedOn(response.rawHeaders), ...answered]);
    pipeline(response, answer, () => {});
  }
}

interface MaskedAnswer extends Pick<ForwardedRequest, "answered"> {
  readonly mask: AnswerMask;
  readonly statusCode: number;
}

function answerMasked(
  response: IncomingMessage,
  answer: ServerResponse,
  { mask, answered, statusCode }: MaskedAnswer,
): void {
  const { headers } = response;
  const isPlain =
    /^identity$/i.test(headers["content-encoding"] ?? "identity") &&
    /^chunked$/i.test(headers["transfer-encoding"] ?? "chunked");
  if (!isPlain) {
    response.destroy();
    refuse(answer, ENCODED);
    return;
  }
  const isBodiless = answer.req.method === "HEAD" || statusCode === 204 || statusCode === 304;
  const passed = passedOn(response.rawHeaders, isBodiless ? NONE : LENGTH);
  answer.sendDate = false;
  answer.writeHead(statusCode, [...passed.map((text) => mask(text)), ...answered]);
  const pieces = mask.inPieces();
  const masked = new Transform({
    transform: (bytes: Buffer, _, done) =>
      done(null, Buffer.from(pieces.push(bytes.toString("latin1")), "latin1")),
    flush: (done) => done(null, Buffer.from(pieces.end(), "latin1")),
  });
  pipeline(response, masked, answer, () => {});
}

const ENCODED: Refusal = {
  status: BAD_GATEWAY,
  words:
    "The host compressed its response although it was asked not to, so secrets in the response cannot be masked.\n",
};
