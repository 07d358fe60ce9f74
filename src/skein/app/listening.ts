// How a server listens, either in one process or in the first of several processes.

import { lookup } from "node:dns/promises";
import { AppError } from "../../agent/core/errors.ts";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * The maximum number of connections that wait while the process is busy, which is also the maximum on Linux. With
 * Node's default of 511, clients' connections were reset.
 */
export const BACKLOG = 4096;

/** Returns all addresses of `localhost`, or any other host unchanged. */
export const addressesOf = async (host: string): Promise<readonly string[]> =>
  host === "localhost"
    ? [...new Set((await lookup(host, { all: true })).map(({ address }) => address))]
    : [host];

/** Returns the error for a server that could not listen at `place`. */
export function listenFailure(place: ListenAddress, cause: unknown): AppError {
  const { host, port } = place;
  const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown reason";
  const what = why === "EADDRINUSE" ? "is taken" : `is not available (${why})`;
  return new AppError("unavailable", `${host}:${port} ${what}. Set PORT to another port.`, { cause });
}
