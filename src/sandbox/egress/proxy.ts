// The HTTP proxy through which a sandbox reaches its allowed hosts. It decrypts nothing. The host of a
// tunnel (`CONNECT`) must be the server's name in the TLS that follows. The host of a plain request must be its `Host`. Everything that comes from the sandbox is untrusted.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import type { RefusedHost } from "../../agent/core/backend.ts";
import { type Allows, hostName } from "./allowed-hosts.ts";
import { serverNameIn } from "./client-hello.ts";
import { type DialOptions, dial } from "./dial.ts";

// An import of `node:http` would load its WebSocket client, and with it `fetch`.
const { createServer, request } = process.getBuiltinModule("node:http");

/** Maximum time for a client to send what its connection is for. */
const HELLO_MS = 10_000;
const MAX_HEADER_BYTES = 32 * 1024;
/** A TLS alert: fatal, unrecognized_name. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 1, 0, 2, 2, 112]);

/** The rights of a client of the proxy. */
export interface Pass {
  readonly allows: Allows;
  /** `target` is `host:port`, at most 300 characters without control characters. */
  onRefused(target: string, reason: RefusedHost["reason"]): void;
}

export interface ProxyOptions extends DialOptions {
  /** Finds the pass for the user name that a client sent to the proxy. */
  readonly passOf: (user: string | undefined) => Pass;
  /** Aborts all connections. */
  readonly signal: AbortSignal;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** Returns a function that serves one connection of the sandbox, and owns it from then on. */
export function egressProxy(options: ProxyOptions): (connection: Duplex) => void {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAlive: false });
  server.on("connect", (asked: IncomingMessage, client: Duplex, head: Buffer) => {
    tunnel(asked, client, head, options).catch((error: unknown) => client.destroy(asError(error)));
  });
  server.on("request", (asked, answer) => {
    forward(asked, answer, options).catch((error: unknown) => answer.destroy(asError(error)));
  });
  server.on("clientError", (_, client) => client.destroy());
  return (connection) => {
    connection.on("error", () => {});
    server.emit("connection", connection);
  };
}

const asError = (error: unknown) => (error instanceof Error ? error : new Error(String(error)));

/** Answers `CONNECT`. */
async function tunnel(asked: IncomingMessage, client: Duplex, head: Buffer, options: ProxyOptions) {
  const pass = options.passOf(userOf(asked));
  const target = targetIn(asked.url ?? "");
  const found = await reach(target, asked.url ?? "", pass, options);
  if ("refusal" in found) {
    const { status, words } = found.refusal;
    client.end(
      `HTTP/1.1 ${status}\r\n${HEADERS.join("\r\n")}\r\nContent-Length: ${words.length}\r\n\r\n${words}`,
    );
    return;
  }
  const { outside } = found;
  client.once("close", () => outside.destroy());
  outside.once("close", () => {
    if (!outside.readableEnded) client.destroy();
  });
  if (client.destroyed) outside.destroy();
  client.write("HTTP/1.1 200 Connection established\r\n\r\n");
  const hello = await helloOf(client, head, found.host);
  if (hello === "gone") return void client.destroy();
  if (hello === "other") {
    pass.onRefused(textOf(found), "name");
    client.end(UNRECOGNIZED_NAME, () => outside.destroy());
    return;
  }
  outside.write(hello);
  client.pipe(outside);
  outside.pipe(client);
}

/**
 * Resolves with the first bytes of the client if they are TLS for this host. `other`: they are something else, or do not
 * come. `gone`: the client has left.
 */
function helloOf(client: Duplex, head: Buffer, host: string): Promise<Buffer | "other" | "gone"> {
  return new Promise((resolve) => {
    let bytes = head;
    const end = (hello: Buffer | "other" | "gone") => {
      clearTimeout(timer);
      client.off("data", onData).off("end", onGone).off("close", onGone).pause();
      resolve(hello);
    };
    const look = () => {
      const found = serverNameIn(bytes);
      if (found !== "more") end(found !== "none" && hostName(found.name) === host ? bytes : "other");
    };
    const onData = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      look();
    };
    const onGone = () => end("gone");
    const timer = setTimeout(() => end("other"), HELLO_MS);
    client.on("data", onData).once("end", onGone).once("close", onGone);
    look();
  });
}

/** Answers a request for a plain `http:` URL. */
async function forward(asked: IncomingMessage, answer: ServerResponse, options: ProxyOptions) {
  const pass = options.passOf(userOf(asked));
  const url = URL.parse(asked.url ?? "");
  if (url?.protocol !== "http:" || url.username !== "" || url.password !== "")
    return refuse(answer, NOT_A_PROXY);
  const target = targetIn(`${url.hostname}:${url.port || 80}`);
  const hosts = asked.headersDistinct.host ?? [];
  const isSameHost = hosts.length === 1 && URL.parse(`http://${hosts[0]}`)?.host === url.host;
  if (target && !isSameHost) {
    pass.onRefused(textOf(target), "name");
    return refuse(answer, {
      status: "403 Forbidden",
      words: "The request's Host is not the host of its URL.\n",
    });
  }
  const found = await reach(target, url.host, pass, options);
  if ("refusal" in found) return refuse(answer, found.refusal);
  const { outside } = found;
  answer.once("close", () => outside.destroy());
  const onward = request({
    createConnection: () => outside,
    method: asked.method,
    path: `${url.pathname}${url.search}`,
    headers: [...passedOn(asked.rawHeaders), "Connection", "close"],
    setHost: false,
  });
  onward.once("response", (response) => {
    const headers = [...passedOn(response.rawHeaders), "Connection", "close"];
    answer.writeHead(response.statusCode ?? 502, response.statusMessage, headers);
    pipeline(response, answer, () => {});
  });
  onward.once("error", () => {
    if (answer.headersSent) answer.destroy();
    else refuse(answer, UNREACHABLE);
  });
  pipeline(asked, onward, () => {});
}

/** Headers of one connection, which are not for the next one (RFC 9110, section 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set(
  "connection expect keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer upgrade".split(
    " ",
  ),
);

function passedOn(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, at) => !HOP_BY_HOP.has(rawHeaders[at - (at % 2)]?.toLowerCase() ?? ""));
}

interface Refusal {
  readonly status: string;
  readonly words: string;
}

const HEADERS = ["Content-Type: text/plain", "Connection: close"];
const NOT_A_PROXY: Refusal = {
  status: "400 Bad Request",
  words: "This is an HTTP proxy for http: URLs and CONNECT.\n",
};
const UNREACHABLE: Refusal = { status: "502 Bad Gateway", words: "The host cannot be reached.\n" };
const FORBIDDEN = "403 Forbidden";

function refuse(answer: ServerResponse, { status, words }: Refusal): void {
  answer.writeHead(
    Number(status.slice(0, 3)),
    HEADERS.flatMap((header) => header.split(": ")),
  );
  answer.end(words);
}

/** Connects to the target if the pass allows it. */
async function reach(
  target: Target | undefined,
  asked: string,
  pass: Pass,
  options: ProxyOptions,
): Promise<{ readonly refusal: Refusal } | (Target & { readonly outside: Socket })> {
  if (!target || !pass.allows(target.host, target.port)) {
    pass.onRefused(target ? textOf(target) : shown(asked), "host");
    const words = `This sandbox may not reach ${target ? textOf(target) : "an address"}.\n`;
    return { refusal: { status: FORBIDDEN, words } };
  }
  const outside = await dial(target.host, target.port, options, options.signal);
  if (outside === "unreachable") return { refusal: UNREACHABLE };
  if (outside === "private") {
    pass.onRefused(textOf(target), "address");
    return { refusal: { status: FORBIDDEN, words: `${target.host} has no public address.\n` } };
  }
  const hangUp = () => outside.destroy();
  options.signal.addEventListener("abort", hangUp, { once: true });
  outside.once("close", () => options.signal.removeEventListener("abort", hangUp));
  if (options.signal.aborted) hangUp();
  return { ...target, outside };
}

const textOf = ({ host, port }: Target) => `${host}:${port}`;
/** Nothing but letters, digits and a few signs, because a model and people read it. */
const shown = (text: string) => text.slice(0, 300).replace(/[^A-Za-z0-9.:_[\]-]/g, "?");

/** Undefined if the host is an address. */
function targetIn(text: string): Target | undefined {
  const [, name = "", digits] = /^([^:]{1,254}):(\d{1,5})$/.exec(text) ?? [];
  const host = hostName(name);
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** The user name for the proxy, of at most 100 characters. */
function userOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]{1,200})$/i.exec(headers["proxy-authorization"] ?? "") ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("latin1").split(":")[0];
}
