// Reads JSON bodies. The work is bounded before it begins: a text is counted before it is parsed, and a large one is parsed
// and handled in a tick of the event loop of its own.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { jsonSize } from "../../lib/json.ts";
import { LARGE_BYTES, ownTick } from "../../lib/ticks.ts";
import { tenantOf } from "../auth/guard.ts";

/** Nested lists and maps. Recursive code must not overflow the stack on them. */
const MAX_DEPTH = 64;
/** Keys of one map: each step with a map of more takes milliseconds. */
const MAX_KEYS = 10_000;

const large = new WeakSet<object>();

/** Whether to check and convert this body takes ticks of the event loop of its own. */
export const isLargeBody = (body: unknown) => typeof body === "object" && body !== null && large.has(body);

export interface JsonBodies {
  /** Keys and values of a body. */
  readonly maxEntries: number;
  /** An empty body is no body: stock clients send one, for example to cancel. Default: it is refused. */
  readonly isEmptyTaken?: boolean;
}

/** Replaces the parser of `server`. */
export function readJsonBodies(
  server: Pick<FastifyInstance, "getDefaultJsonParser" | "removeContentTypeParser" | "addContentTypeParser">,
  { maxEntries, isEmptyTaken = false }: JsonBodies,
): void {
  const parse = server.getDefaultJsonParser("error", "error");
  server.removeContentTypeParser("application/json");
  server.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (request: FastifyRequest, body: Buffer) => {
      const encoding = request.headers["content-encoding"];
      if (encoding !== undefined && encoding.toLowerCase() !== "identity")
        throw new AppError(
          "unsupported_media_type",
          `The body is encoded (Content-Encoding: ${encoding.slice(0, 64)}); send it as it is.`,
        );
      if (isEmptyTaken && body.length === 0) return undefined;
      if (body.length > LARGE_BYTES) await ownTick(tenantOf(request));
      const { entries, widest, depth } = jsonSize(body);
      if (depth > MAX_DEPTH)
        throw new AppError(
          "invalid_request",
          `Invalid body: it must not be nested more than ${MAX_DEPTH} deep; it is ${depth} deep.`,
        );
      if (entries > maxEntries)
        throw new AppError(
          "payload_too_large",
          `The body has ${entries} keys and values; at most ${maxEntries} are allowed (limits.body_entries).`,
          { details: { limit: maxEntries, entries } },
        );
      if (widest > MAX_KEYS)
        throw new AppError(
          "payload_too_large",
          `A map of the body has ${widest} keys; at most ${MAX_KEYS} are allowed.`,
          { details: { limit: MAX_KEYS, keys: widest } },
        );
      const value = await new Promise((resolve, reject) => {
        void parse(request, body.toString(), (error, parsed) => (error ? reject(error) : resolve(parsed)));
      });
      if (body.length > LARGE_BYTES) {
        if (typeof value === "object" && value !== null) large.add(value);
        // What follows may take as long as parsing.
        await ownTick(tenantOf(request));
      }
      return value;
    },
  );
}
