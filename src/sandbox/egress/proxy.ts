// The HTTP proxy through which a sandbox reaches its allowed hosts. It decrypts traffic only for hosts that may receive a
// secret. The host of a tunnel (`CONNECT`) must be the server's name in the TLS that follows. The host of a plain request
// must match its `Host` header. Everything that comes from the sandbox is untrusted.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { hostName } from "./allowed-hosts.ts";
import { serverNameIn } from "./client-hello.ts";
import { type DialOptions, dial } from "./dial.ts";
import { type Intercept, interceptor } from "./intercept.ts";
import { FORBIDDEN, passedOn, passOn, REFUSAL_HEADERS, type Refusal, refuse, UNREACHABLE } from "./onward.ts";
import { type HostPort, type Pass, textOf } from "./pass.ts";
import { IDENTITY, type Secrets, UNMASKABLE } from "./secrets.ts";

// An import of `node:http` would also load its WebSocket client and `fetch`.
const { createServer } = process.getBuiltinModule("node:http");

/** The maximum time that a client may take to send its request. */
const HELLO_MS = 10_000;
const MAX_HEADER_BYTES = 32 * 1024;
/** A TLS alert: fatal, unrecognized_name. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 1, 0, 2, 2, 112]);

export interface ProxyOptions extends DialOptions {
  /** Finds the pass for the user name that a client sent to the proxy. */
  readonly passOf: (user: string | undefined) => Pass;
  /** Replaces the placeholders in requests to some hosts, whose TLS is decrypted. */
  readonly secrets?: Secrets | undefined;
  /** Aborts all connections. */
  readonly signal: AbortSignal;
}

/** Returns a function that serves one connection of the sandbox and takes ownership of it. */
export function egressProxy(options: ProxyOptions): (connection: Duplex) => void {
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAlive: false });
  // Every request is looked up and connected separately, so further requests on a connection are refused.
  server.maxRequestsPerSocket = 1;
  const { secrets } = options;
  const intercept = secrets && interceptor(secrets, options);
  server.on("connect", (asked: IncomingMessage, client: Duplex, head: Buffer) => {
    tunnel({ asked, client, head }, options, intercept).catch((error: unknown) =>
      client.destroy(asError(error)),
    );
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

interface TunnelRequest {
  readonly asked: IncomingMessage;
  readonly client: Duplex;
  /** The first bytes of the tunnel. */
  readonly head: Buffer;
}

/** Answers `CONNECT`. */
async function tunnel({ asked, client, head }: TunnelRequest, options: ProxyOptions, intercept?: Intercept) {
  const pass = options.passOf(userOf(asked));
  const target = permitted(targetIn(asked.url ?? ""), asked.url ?? "", pass);
  if ("status" in target) return void client.end(rawRefusal(target));
  const isNamed = options.secrets?.isNamed(target) === true;
  const outside = isNamed ? undefined : await reach(target, pass, options);
  if (outside && "status" in outside) return void client.end(rawRefusal(outside));
  if (outside) endTogether(client, outside);
  client.write("HTTP/1.1 200 Connection established\r\n\r\n");
  const hello = await helloOf(client, head, target.host);
  if (hello === "gone") return void client.destroy();
  if (hello === "other") {
    pass.onRefused(textOf(target), "name");
    return void client.end(UNRECOGNIZED_NAME, () => outside?.destroy());
  }
  if (!outside)
    return intercept?.({ client, hello, target, pass, reach: () => reach(target, pass, options) });
  outside.write(hello);
  client.pipe(outside);
  outside.pipe(client);
}

function endTogether(client: Duplex, outside: Socket): void {
  client.once("close", () => outside.destroy());
  outside.once("close", () => {
    if (!outside.readableEnded) client.destroy();
  });
  if (client.destroyed) outside.destroy();
}

const rawRefusal = ({ status, words }: Refusal) =>
  `HTTP/1.1 ${status}\r\n${REFUSAL_HEADERS.join("\r\n")}\r\nContent-Length: ${Buffer.byteLength(words)}\r\n\r\n${words}`;

/**
 * Resolves with the first bytes that the client sends if they are TLS for this host. Resolves with `other` if they are
 * anything else or do not arrive, and with `gone` if the client has disconnected.
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
  const place = permitted(target, url.host, pass);
  if ("status" in place) return refuse(answer, place);
  const { secrets } = options;
  const isNamed = secrets?.isNamed(place) === true;
  const given = passedOn(asked.rawHeaders, isNamed ? UNMASKABLE : undefined);
  const exchanged = await secrets?.exchange(given, { ...place, isEncrypted: false }, options.signal);
  if (exchanged && "refusal" in exchanged) {
    pass.onRefused(textOf(place), exchanged.reason);
    return refuse(answer, exchanged.refusal);
  }
  const outside = await reach(place, pass, options);
  if ("status" in outside) return refuse(answer, outside);
  passOn(asked, answer, {
    via: outside,
    path: `${url.pathname}${url.search}`,
    headers: [...(exchanged?.headers ?? given), ...(isNamed ? IDENTITY : []), "Connection", "close"],
    mask: isNamed ? secrets?.mask() : undefined,
    answered: ["Connection", "close"],
  });
}

const NOT_A_PROXY: Refusal = {
  status: "400 Bad Request",
  words: "This is an HTTP proxy for http: URLs and CONNECT.\n",
};

/** Returns the target if the pass allows it. */
function permitted(target: HostPort | undefined, asked: string, pass: Pass): HostPort | Refusal {
  if (target && pass.allows(target.host, target.port)) return target;
  pass.onRefused(target ? textOf(target) : shown(asked), "host");
  return {
    status: FORBIDDEN,
    words: `This sandbox may not reach ${target ? textOf(target) : "an address"}.\n`,
  };
}

/** Connects to the target. */
async function reach(target: HostPort, pass: Pass, options: ProxyOptions): Promise<Socket | Refusal> {
  const outside = await dial(target.host, target.port, options, options.signal);
  if (outside === "unreachable") return UNREACHABLE;
  if (outside === "private") {
    pass.onRefused(textOf(target), "address");
    return { status: FORBIDDEN, words: `${target.host} has no public address.\n` };
  }
  const hangUp = () => outside.destroy();
  options.signal.addEventListener("abort", hangUp, { once: true });
  outside.once("close", () => options.signal.removeEventListener("abort", hangUp));
  if (options.signal.aborted) hangUp();
  return outside;
}

/**
 * Returns a text with only letters, digits and a few other characters, because a model and people will see
 * it.
 */
const shown = (text: string) => text.slice(0, 300).replace(/[^A-Za-z0-9.:_[\]-]/g, "?");

/** Parses a target. Returns undefined if the host is an address. */
function targetIn(text: string): HostPort | undefined {
  const [, name = "", digits] = /^([^:]{1,254}):(\d{1,5})$/.exec(text) ?? [];
  const host = hostName(name);
  const port = Number(digits);
  return host !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

/** Returns the user name for the proxy, which has at most 100 characters. */
function userOf({ headers }: IncomingMessage): string | undefined {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]{1,200})$/i.exec(headers["proxy-authorization"] ?? "") ?? [];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("latin1").split(":")[0];
}
