// Whether a client is still there.

import type { FastifyReply } from "fastify";

/** Aborts when the connection of `reply` ends, early or after the answer; at once when it has ended already. */
export function gone({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once("close", () => controller.abort());
  if (raw.destroyed) controller.abort();
  return controller.signal;
}
