// Connects to a host on the internet. The host's name is resolved here, all of its addresses must be public, and the
// connection uses one of these addresses.

import { connect, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { oncePer } from "../../lib/once-per.ts";
import { lookUp, type PublicFetchOptions } from "../../lib/ssrf-safe-fetch/index.ts";

const tls = process.getBuiltinModule("node:tls");

const CONNECT_MS = 10_000;
const MAX_TRIED = 4;

/** The options for connecting. `allow` lists hosts that may have private addresses. */
export interface DialOptions extends Pick<PublicFetchOptions, "allow" | "resolve"> {
  /** The certificate authorities to trust in addition to Node's own, in PEM format. Default: none. */
  readonly authorities?: readonly string[];
}

/**
 * Resolves with a socket, or with `private` or `unreachable` if no connection was made. The caller destroys
 * the socket.
 */
export async function dial(
  host: string,
  port: number,
  options: DialOptions,
  signal: AbortSignal,
): Promise<Socket | "private" | "unreachable"> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  try {
    const { addresses, isAllowed } = await lookUp(new URL(`https://${host}:${port}`), options, limit);
    if (addresses.length === 0) return "unreachable";
    if (!isAllowed) return "private";
    for (const address of addresses.slice(0, MAX_TRIED)) {
      const socket = await connected(address, port, limit);
      if (socket) return socket;
    }
  } catch (error) {
    if (!limit.aborted) throw error;
  }
  return "unreachable";
}

function connected(host: string, port: number, signal: AbortSignal): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
    const end = (result: Socket | undefined) => {
      signal.removeEventListener("abort", onEnd);
      socket.off("connect", onConnect).off("error", onEnd);
      // Later errors close the socket, and the code that uses the socket handles the closing.
      socket.on("error", () => {});
      if (!result) socket.destroy();
      resolve(result);
    };
    const onConnect = () => end(socket);
    const onEnd = () => end(undefined);
    socket.on("connect", onConnect).on("error", onEnd);
    signal.addEventListener("abort", onEnd, { once: true });
    if (signal.aborted) onEnd();
  });
}

/** Creates each context only once, because reading all certificates takes a long time. */
const contextOf = oncePer(({ authorities }: DialOptions) =>
  tls.createSecureContext(authorities && { ca: [...tls.rootCertificates, ...authorities] }),
);

/**
 * Begins TLS with the host on a connection. Returns undefined if the host's certificate is not trusted or the host does
 * not support TLS. Takes ownership of `socket`.
 */
export function secured(
  socket: Socket,
  servername: string,
  options: DialOptions,
): Promise<TLSSocket | undefined> {
  return new Promise((resolve) => {
    const secureContext = contextOf(options);
    const secure = tls.connect({ socket, servername, secureContext, ALPNProtocols: ["http/1.1"] });
    const timer = setTimeout(() => secure.destroy(), CONNECT_MS);
    secure.once("secureConnect", () => {
      clearTimeout(timer);
      resolve(secure);
    });
    secure.on("error", () => {});
    secure.once("close", () => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}
