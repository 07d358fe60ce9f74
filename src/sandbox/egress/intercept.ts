// Decrypts the TLS of a tunnel to a host that may receive a secret. The program in the sandbox trusts the sandbox's own
// authority. The server opens a separate TLS connection to the host. Every request must be for this host.

import type { Agent as HttpAgent, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type DialOptions, secured } from "./dial.ts";
import { BAD_GATEWAY, passedOn, passOn, type Refusal, RefusedConnection, refuse } from "./onward.ts";
import { type HostPort, type Pass, textOf } from "./pass.ts";
import { IDENTITY, type Secrets, UNMASKABLE } from "./secrets.ts";

const { Agent, createServer } = process.getBuiltinModule("node:http");
const { TLSSocket } = process.getBuiltinModule("node:tls");

const HANDSHAKE_MS = 10_000;
const MAX_HEADER_BYTES = 32 * 1024;
/**
 * The maximum number of requests in a tunnel. A limit is needed because a client may send all of them before
 * it reads an answer.
 */
const MAX_REQUESTS = 100;

/** A tunnel whose client has begun TLS for its host. */
export interface Tunnel {
  readonly client: Duplex;
  readonly hello: Buffer;
  readonly target: HostPort;
  readonly pass: Pass;
  /** Connects to the host. */
  reach(): Promise<Socket | Refusal>;
}

/** Handles a tunnel and takes ownership of the client. */
export type Intercept = (tunnel: Tunnel) => void;

type Options = DialOptions & { readonly signal: AbortSignal };

export function interceptor(secrets: Secrets, options: Options): Intercept {
  // HTTP/2 would need a separate parser, so it is not offered.
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES });
  server.maxRequestsPerSocket = MAX_REQUESTS;
  const tunnels = new WeakMap<object, OpenTunnel>();
  server.on("request", (asked, answer) => {
    const tunnel = tunnels.get(asked.socket);
    if (!tunnel) return void asked.socket.destroy();
    serve({ asked, answer, tunnel }, secrets, options.signal).catch(() => answer.destroy());
  });

  return (tunnel) => {
    const { client, hello, target } = tunnel;
    const agent = agentFor(tunnel, options);
    client.unshift(hello);
    const secure = new TLSSocket(client, {
      isServer: true,
      secureContext: secrets.authority.contextFor(target.host),
      ALPNProtocols: ["http/1.1"],
    });
    tunnels.set(secure, { ...tunnel, agent });
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
      agent.destroy();
    });
    client.once("close", end);
    if (options.signal.aborted || client.destroyed) end();
  };
}

interface OpenTunnel extends Tunnel {
  /** The connections to the host. */
  readonly agent: HttpAgent;
}

/**
 * Creates the agent of a tunnel. Requests of a tunnel share a connection to its host, as they would without
 * Skein.
 */
function agentFor({ client, target, reach }: Tunnel, options: Options): HttpAgent {
  const connected = async () => {
    const outside = await reach();
    if ("status" in outside) throw new RefusedConnection(outside);
    const secure = await secured(outside, target.host, options);
    if (!secure) throw new RefusedConnection(UNTRUSTED);
    // The request has ended with the client, but the agent would keep the connection.
    if (client.destroyed) secure.destroy();
    return secure;
  };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = (_, done) => {
    connected().then(
      (secure) => done?.(null, secure),
      (error: Error) => done?.(error, undefined as never),
    );
    return undefined;
  };
  return agent;
}

interface InterceptedRequest {
  readonly asked: IncomingMessage;
  readonly answer: ServerResponse;
  readonly tunnel: OpenTunnel;
}

/** Answers a request from a program in the sandbox. */
async function serve(
  { asked, answer, tunnel }: InterceptedRequest,
  secrets: Secrets,
  signal: AbortSignal,
): Promise<void> {
  const { target, pass, agent } = tunnel;
  const fault = faultOf(asked, target);
  if (fault) {
    pass.onRefused(textOf(target), "name");
    return refuse(answer, fault);
  }
  const given = passedOn(asked.rawHeaders, UNMASKABLE);
  const exchanged = await secrets.exchange(given, { ...target, isEncrypted: true }, signal);
  if ("refusal" in exchanged) {
    pass.onRefused(textOf(target), exchanged.reason);
    return refuse(answer, exchanged.refusal);
  }
  passOn(asked, answer, {
    via: agent,
    path: asked.url ?? "/",
    headers: [...exchanged.headers, ...IDENTITY],
    mask: secrets.mask(),
    answered: [],
  });
}

/** Returns a refusal, or undefined if the request is for this host and has the usual form. */
function faultOf({ url = "", headersDistinct }: IncomingMessage, target: HostPort): Refusal | undefined {
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
  words: "The host's certificate is not trusted, or the host does not support TLS.\n",
};
