// The quotas of whoever sends a request: how many requests a minute, and how many event streams at once.

import type { FastifyInstance, FastifyReply } from "fastify";
import { randomId } from "../lib/random-id.ts";
import { keep } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";
import { ownerOf } from "./auth/guard.ts";
import { accessOf } from "./auth/scopes.ts";

/** To be called after `guard`: who is not known has no quota, and public routes cost none. */
export function limitRequests(server: FastifyInstance, quotas: Quotas): void {
  server.addHook("onRequest", async (request) => {
    if (accessOf(request.method, request.routeOptions.url ?? "") === "public") return;
    await quotas.request(ownerOf(request));
  });
}

const streaming = new WeakSet<FastifyReply>();

/** From now on until its connection is done with it the reply counts as a stream. Throws `limit_exceeded`. */
export async function holdStream(quotas: Quotas, reply: FastifyReply): Promise<void> {
  if (streaming.has(reply)) return;
  const held = { owner: ownerOf(reply.request), thing: "streams", id: randomId() } as const;
  await quotas.hold(held.owner, held.thing, held.id);
  streaming.add(reply);
  const kept = keep(quotas, held);
  // One that left meanwhile does not say so again.
  if (reply.raw.closed || reply.raw.destroyed) await kept.release();
  else reply.raw.once("close", () => void kept.release());
}
