// The one connection of a request: made to an address that was checked, whatever its host's name is said to be, and cut
// when more comes over it than any answer may need.

import { isIP, type LookupFunction, type Socket } from "node:net";
import type { buildConnector } from "undici";
import { plainAddress } from "./public-address.ts";

const CONNECT_MS = 5000;
/** Of one answer, with everything around its body: some of that has no end, and nobody else counts it. */
const MAX_RAW_BYTES = 16 * 1024 * 1024;
const COUNT_EACH_MS = 100;

export interface Dial {
  readonly connect: buildConnector.connector;
  /** Whether there ever was a connection, and so something may have been sent. */
  isConnected(): boolean;
  /** Ends the connection, with what the request then fails of. */
  hangUp(error?: FetchError): void;
}

/** Whoever gets it hangs up. */
export async function pinnedDial(addresses: readonly string[]): Promise<Dial> {
  const { buildConnector } = await import("undici");
  const checked = new Set(addresses.map(plainAddress));
  const connector = buildConnector({
    ...{ lookup: only(addresses), timeout: CONNECT_MS, allowH2: false, maxCachedSessions: 0 },
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
      // It returns the socket at once; its type does not say so.
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

/** What looking a name up finds, whatever the name. */
function only(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, callback) => {
    const [first] = found;
    if (all || !first) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

// How a request to a stranger's address fails.

/**
 * `forbidden`: it may not be sent there. `unreachable`: no connection, so nothing was sent. `broken`: the connection
 * ended too early; what was sent may have had its effect. `unreadable`: there was an answer, and it cannot be taken.
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
