// The connection of one request. It uses a checked address instead of resolving the name again, and closes when the
// response exceeds a limit.

import { isIP, type LookupFunction, type Socket } from "node:net";
import type { buildConnector } from "undici";
import { plainAddress } from "./public-address.ts";

const CONNECT_MS = 5000;
/** The maximum size in bytes of one response including its framing, which is not limited otherwise. */
const MAX_RAW_BYTES = 16 * 1024 * 1024;
const COUNT_EACH_MS = 100;

export interface Dial {
  readonly connect: buildConnector.connector;
  /** Returns true if a connection was made, which means that data may have been sent. */
  isConnected(): boolean;
  /** Closes the connection. The request then fails with `error`. */
  hangUp(error?: FetchError): void;
}

/** The caller must hang up. */
export async function pinnedDial(addresses: readonly string[]): Promise<Dial> {
  const { buildConnector } = await import("undici");
  const checked = new Set(addresses.map(plainAddress));
  const connector = buildConnector({
    lookup: only(addresses),
    timeout: CONNECT_MS,
    allowH2: false,
    maxCachedSessions: 0,
  });
  let socket: Socket | undefined;
  let isConnected = false;
  let counting: NodeJS.Timeout | undefined;
  const hangUp = (error?: FetchError) => {
    clearInterval(counting);
    socket?.destroy(error);
  };
  const count = () => {
    if (socket && socket.bytesRead > MAX_RAW_BYTES)
      hangUp(new FetchError("unreadable", `the response is larger than ${MAX_RAW_BYTES / 1024} KiB`));
  };
  return {
    connect(options, callback) {
      // Undici returns the socket immediately, but its types omit it.
      socket = connector(options, (error, made) => {
        if (error) return callback(error, null);
        isConnected = checked.has(plainAddress(made.remoteAddress ?? ""));
        if (isConnected) {
          counting = setInterval(count, COUNT_EACH_MS).unref();
          return callback(null, made);
        }
        made.destroy();
        callback(new FetchError("forbidden", "its host has no public address"), null);
      }) as unknown as Socket;
    },
    isConnected: () => isConnected,
    hangUp,
  };
}

/** Returns a lookup function that resolves every name to these addresses. */
function only(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, callback) => {
    const [first] = found;
    if (all || !first) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

/**
 * `forbidden`: the request must not be sent to that address. `unreachable`: there was no connection, so nothing was
 * sent. `broken`: the connection ended too early, so the request may have taken effect. `unreadable`: the response
 * cannot be used.
 */
export type FetchFailure = "forbidden" | "unreachable" | "broken" | "unreadable";

/** The message completes "It failed: …" and contains neither host nor address. */
export class FetchError extends Error {
  readonly failure: FetchFailure;

  constructor(failure: FetchFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "FetchError";
    this.failure = failure;
  }
}
