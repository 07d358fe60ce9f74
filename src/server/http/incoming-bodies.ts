// Limits the total size of the JSON bodies that the process keeps for requests in progress. A request reserves room for
// its body before any of it is read. Tenants have fair shares of the room.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { Shares, sharedPlaces, type Verdict } from "../../agent/core/shares.ts";
import { LARGE_BYTES } from "../../lib/ticks.ts";
import { tenantOf } from "../auth/guard.ts";

/** The unit in which room is reserved, in bytes. A shorter body needs no room. */
const PLACE_BYTES = LARGE_BYTES;
/** The number of bodies of the maximum size that always fit, even if the setting is lower. */
const LEAST_BODIES = 16;
/** The time after which a refused client may retry, in ms. */
const RETRY_MS = 1000;

const taken = new WeakMap<FastifyRequest, () => void>();

export interface IncomingLimits {
  /** The maximum number of bytes in one body. A route that accepts longer bodies reads them as a stream. */
  readonly bodyBytes: number;
  /** The maximum number of bytes in all bodies together. */
  readonly incomingBytes: number;
}

export interface RoomForBodies {
  /** The maximum number of bytes in all bodies together. */
  readonly most: number;
  readonly bodyBytes: number;
  readonly shares: Shares;
}

export function roomForBodies(
  { bodyBytes, incomingBytes }: IncomingLimits,
  hasSeveralTenants: boolean,
): RoomForBodies {
  const most = Math.max(incomingBytes, LEAST_BODIES * bodyBytes);
  const shares = new Shares(sharedPlaces(Math.ceil(most / PLACE_BYTES), hasSeveralTenants));
  return { most, bodyBytes, shares };
}

/** Call this after `guard`. Refuses requests before their bodies are read, with `limit_exceeded` or `unavailable`. */
export function boundIncomingBodies(
  server: FastifyInstance,
  { most, bodyBytes, shares }: RoomForBodies,
): void {
  server.addHook("preParsing", async (request, reply) => {
    const bytes = bytesOf(request, bodyBytes);
    if (bytes < PLACE_BYTES) return;
    const tenant = tenantOf(request);
    const places = Math.ceil(bytes / PLACE_BYTES);
    const verdict = shares.verdict(tenant, { taken: places - 1, own: places - 1 });
    if (verdict !== "granted") throw noRoom(verdict, most);
    const giveBack = shares.take(tenant, places);
    taken.set(request, giveBack);
    reply.raw.once("close", giveBack);
    if (reply.raw.destroyed || reply.raw.closed) giveBack();
  });
}

/** Releases the room of a body that has been handled, before a response that may take a long time. */
export function bodyIsDone(request: FastifyRequest): void {
  taken.get(request)?.();
}

/** Returns the maximum length of the body in bytes, or 0 for a body that is refused or read as a stream. */
function bytesOf({ headers, routeOptions }: FastifyRequest, most: number): number {
  if ((routeOptions.bodyLimit ?? most) > most) return 0;
  if (headers["transfer-encoding"] !== undefined) return most;
  const length = Number(headers["content-length"] ?? 0);
  return length > most ? 0 : length;
}

function noRoom(verdict: Exclude<Verdict, "granted">, most: number): AppError {
  const details = { limit: "limits.incoming_bytes", most, retry_after_ms: RETRY_MS };
  const again = `Try again in ${RETRY_MS / 1000} s.`;
  return verdict === "full"
    ? new AppError(
        "unavailable",
        `Requests in progress use all of the ${most} bytes that this server accepts at once (\`limits.incoming_bytes\`). ${again}`,
        { details },
      )
    : new AppError(
        "limit_exceeded",
        `Your tenant is using its full share of the ${most} bytes of requests that this server accepts at once (\`limits.incoming_bytes\`). ${again}`,
        { details: { ...details, of: "tenant" } },
      );
}
