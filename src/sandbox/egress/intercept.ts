// Decrypts the TLS of a tunnel to a host that may get a secret. The program in the sandbox trusts the sandbox's own authority. To the host,
// the server opens TLS connections of its own. Each request on it is for this host, and gets a connection of its own.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type DialOptions, secured } from "./dial.ts";
import { BAD_GATEWAY, passedOn, passOn, type Refusal, refuse } from "./onward.ts";
import { type Pass, type Target, textOf } from "./pass.ts";
import { IDENTITY, type Secrets, UNMASKABLE } from "./secrets.ts";

const { createServer } = process.getBuiltinModule("node:http");
const { TLSSocket } = process.getBuiltinModule("node:tls");

const HANDSHAKE_MS = 10_000;
const MAX_HEADER_BYTES = 32 * 1024;

/** A tunnel whose client has begun TLS for its host. */
export interface Tunnel {
  readonly client: Duplex;
  readonly hello: Buffer;
  readonly target: Target;
  readonly pass: Pass;
  /** Connects to the host. */
  reach(): Promise<Socket | Refusal>;
}

/** Owns the client from then on. */
export type Intercept = (tunnel: Tunnel) => void;

type Options = DialOptions & { readonly signal: AbortSignal };

export function interceptor(secrets: Secrets, options: Options): Intercept {
  // HTTP/2 would need a parser of its own, so none is offered.
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES });
  const tunnels = new WeakMap<object, Tunnel>();
  server.on("request", (asked, answer) => {
    const tunnel = tunnels.get(asked.socket);
    if (!tunnel) return void asked.socket.destroy();
    serve({ asked, answer, tunnel }, secrets, options).catch(() => answer.destroy());
  });

  return (tunnel) => {
    const { client, hello, target } = tunnel;
    client.unshift(hello);
    const secure = new TLSSocket(client, {
      isServer: true,
      secureContext: secrets.authority.contextFor(target.host),
      ALPNProtocols: ["http/1.1"],
    });
    tunnels.set(secure, tunnel);
    const end = () => secure.destroy();
    const timer = setTimeout(end, HANDSHAKE_MS);
    options.signal.addEventListener("abort", end, { once: true });
    secure.on("error", () => {});
    secure.once("secure", () => {
      clearTimeout(timer);
      server.emit("connection", secure);
    });
    secure.once("close", () => {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", end);
      client.destroy();
    });
    client.once("close", end);
    if (options.signal.aborted || client.destroyed) end();
  };
}

interface Served {
  readonly asked: IncomingMessage;
  readonly answer: ServerResponse;
  readonly tunnel: Tunnel;
}

/** Answers a request of a program in the sandbox. */
async function serve({ asked, answer, tunnel }: Served, secrets: Secrets, options: Options): Promise<void> {
  const { target, pass, reach } = tunnel;
  const fault = faultOf(asked, target);
  if (fault) {
    pass.onRefused(textOf(target), "name");
    return refuse(answer, fault);
  }
  const given = passedOn(asked.rawHeaders, UNMASKABLE);
  const exchanged = await secrets.exchange(given, { ...target, isEncrypted: true }, options.signal);
  if ("refusal" in exchanged) {
    pass.onRefused(textOf(target), exchanged.reason);
    return refuse(answer, exchanged.refusal);
  }
  const outside = await reach();
  if ("status" in outside) return refuse(answer, outside);
  const secure = await secured(outside, target.host, options);
  if (!secure) return refuse(answer, UNTRUSTED);
  passOn(asked, answer, {
    connection: secure,
    path: asked.url ?? "/",
    headers: [...exchanged.headers, ...IDENTITY],
    mask: secrets.mask(),
    answered: [],
  });
}

/** Undefined if the request is for this host, in the usual form. */
function faultOf({ url = "", headersDistinct }: IncomingMessage, target: Target): Refusal | undefined {
  const hosts = headersDistinct.host ?? [];
  const isForHost =
    hosts.length === 1 &&
    URL.parse(`https://${hosts[0]}`)?.host === URL.parse(`https://${textOf(target)}`)?.host;
  if (!isForHost)
    return {
      status: "421 Misdirected Request",
      words: "The request's Host is not the host of its connection.\n",
    };
  const [encoding = "chunked", ...more] = headersDistinct["transfer-encoding"] ?? [];
  if (!/^chunked$/i.test(encoding) || more.length > 0)
    return { status: "501 Not Implemented", words: "The request's Transfer-Encoding is not chunked.\n" };
  if (!/^(?:\/|\*$)/.test(url))
    return { status: "400 Bad Request", words: "The request's target is not a path.\n" };
  return undefined;
}

const UNTRUSTED: Refusal = {
  status: BAD_GATEWAY,
  words: "The host's certificate is not trusted, or it speaks no TLS.\n",
};
