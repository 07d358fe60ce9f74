// Limits the connections that the server keeps open. Each address has a fair share, so no address can lock the others
// out. Some of the process's file descriptors stay free for its own work.

import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Shares, sharedPlaces } from "../../agent/core/shares.ts";
import { atMostEvery } from "../../lib/at-most-every.ts";
import { subscriberNetwork } from "../../lib/hosts.ts";
import type { Logger } from "../../lib/logger.ts";

export interface ConnectionLimits {
  /**
   * The maximum number of connections from all addresses. The actual maximum is lower if the process may not open that
   * many files.
   */
  readonly total: number;
  /** The maximum number of connections from one address. Default: its fair share. */
  readonly perAddress?: number | undefined;
  /** Returns true for gateways, whose connections belong to many users. Only `total` limits them. */
  readonly isGateway: (address: string) => boolean;
}

/** The fraction of the process's file descriptors that connections may use. */
const DESCRIPTORS = 3 / 4;
/** The number of descriptors kept free for the process's own work: stores, providers, and commands of runs. */
const OWN = 64;
const LEAST = 8;
/** The minimum interval between two log lines about refused connections, in ms. */
const LOG_MS = 10_000;

/** Returns the maximum number of connections for a process that may open `files` files. */
export const connectionsOf = (files: number): number =>
  Math.max(LEAST, Math.floor(Math.min(files * DESCRIPTORS, files - OWN)));

/** Destroys and logs connections beyond the limits. */
export function limitConnections(
  server: Server,
  limits: ConnectionLimits,
  logger: Pick<Logger, "warn">,
): void {
  const { perAddress = Number.POSITIVE_INFINITY, isGateway } = limits;
  const total = Math.min(limits.total, connectionsOf(mostOpenFiles()));
  const shares = new Shares(sharedPlaces(total, true));
  const tell = atMostEvery<string>(LOG_MS, (address, refused) =>
    logger.warn(
      { address, refused, connections: shares.used, most: total },
      "connections were refused: too many are open, or too many from one address (`limits.connections`)",
    ),
  );

  const mayConnect = (address: string, network: string) =>
    isGateway(address)
      ? shares.used < total
      : shares.verdict(network) === "granted" && shares.heldBy(network) < perAddress;

  const refuse = (socket: Socket, address: string) => {
    socket.destroy();
    tell(address);
  };

  server.on("connection", (socket: Socket) => {
    // A socket that is already closed has no address.
    const address = socket.remoteAddress;
    if (address === undefined) return;
    const network = subscriberNetwork(address);
    if (mayConnect(address, network)) socket.once("close", shares.take(network));
    else refuse(socket, address);
  });
}

/**
 * Returns the maximum number of files that this process may open at once, or infinity if the system does not report it.
 */
function mostOpenFiles(): number {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
