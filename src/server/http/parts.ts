// Parts of the server that are loaded by the first request that needs them. Each part is its own Fastify server, which
// never listens: the main server passes requests on before it handles them itself.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { type WireName, wireAt } from "../config/wire-names.ts";

const handedOn = new WeakSet<FastifyRequest>();

/** Returns true if a part answers the request. */
export const isHandedOn = (request: FastifyRequest): boolean => handedOn.has(request);

/**
 * Call this before adding any other hook. `load` creates the server of a wire. If `load` throws, the request fails with
 * that error, and the next request tries again.
 */
export function handOn(
  server: FastifyInstance,
  names: readonly WireName[],
  load: (name: WireName) => Promise<FastifyInstance>,
): void {
  const parts = new Map<WireName, Promise<FastifyInstance>>();
  const partOf = (name: WireName) => {
    const known = parts.get(name);
    if (known) return known;
    const part = load(name);
    parts.set(name, part);
    part.catch(() => parts.delete(name));
    return part;
  };
  let isClosing = false;
  server.addHook("onRequest", (request, reply, next) => {
    const name = wireAt(request.url);
    if (name === undefined || !names.includes(name)) return next();
    // The main server refuses the request.
    if (isClosing && !parts.has(name)) return next();
    const pass = (part: FastifyInstance) => {
      handedOn.add(request);
      reply.hijack();
      part.routing(request.raw, reply.raw);
    };
    partOf(name).then(pass).catch(next);
  });
  server.addHook("preClose", async () => {
    isClosing = true;
    await Promise.allSettled([...parts.values()].map(async (part) => (await part).close()));
  });
}
