// Whether a client is still there.

import type { FastifyReply } from "fastify";

/** Made once: an error of its own for every connection costs more than the rest of its end. */
const GONE = new Error("The client has left.");

/** Aborts when the connection of `reply` ends, early or after the answer; at once when it has ended already. */
export function gone({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once("close", () => controller.abort(GONE));
  if (raw.destroyed) controller.abort(GONE);
  return controller.signal;
}

/** Whether that is why something was given up: nobody waits for the answer, and nothing is wrong. */
export const isGone = (error: unknown) => error === GONE;
