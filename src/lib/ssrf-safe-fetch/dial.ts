// The connection of one request: made to a checked address, not to what the name resolves to now, and cut when the
// response exceeds a limit.

import { isIP, type LookupFunction, type Socket } from "node:net";
import type { buildConnector } from "undici";
import { plainAddress } from "./public-address.ts";

const CONNECT_MS = 5000;
/** Of one response with its framing, which has no other limit. */
const MAX_RAW_BYTES = 16 * 1024 * 1024;
const COUNT_EACH_MS = 100;

export interface Dial {
  readonly connect: buildConnector.connector;
  /** Whether there was a connection, so that something may have been sent. */
  isConnected(): boolean;
  /** Ends the connection; the request then fails with `error`. */
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
      hangUp(new FetchError("unreadable", `the answer is larger than ${MAX_RAW_BYTES / 1024} KiB`));
  };
  return {
    connect(options, callback) {
      // Undici returns the socket at once, which its type does not say.
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

/** A lookup that finds these addresses for every name. */
function only(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, callback) => {
    const [first] = found;
    if (all || !first) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

/**
 * `forbidden`: it may not be sent there. `unreachable`: no connection, so nothing was sent. `broken`: the connection
 * ended too early; the request may have had its effect. `unreadable`: the response cannot be used.
 */
export type FetchFailure = "forbidden" | "unreachable" | "broken" | "unreadable";

/** The message completes "It failed: …" and names neither host nor address. */
export class FetchError extends Error {
  readonly failure: FetchFailure;

  constructor(failure: FetchFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "FetchError";
    this.failure = failure;
  }
}
