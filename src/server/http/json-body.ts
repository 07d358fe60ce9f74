// Reads JSON bodies. The work is limited before it begins, by counting a text's keys and values before parsing it. A
// large body is parsed and handled in its own tick of the event loop.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { jsonSize } from "../../lib/json.ts";
import { LARGE_BYTES, ownTick } from "../../lib/ticks.ts";
import { tenantOf } from "../auth/guard.ts";

/** The maximum depth of nested lists and maps, which prevents recursive code from overflowing the stack. */
const MAX_DEPTH = 64;
/** The maximum number of keys in one map. Each step with a larger map would take milliseconds. */
const MAX_KEYS = 10_000;

const large = new WeakSet<object>();

/** Returns true if this body is so large that it is checked and converted in separate ticks of the event loop. */
export const isLargeBody = (body: unknown) => typeof body === "object" && body !== null && large.has(body);

export interface JsonBodies {
  /** The maximum number of keys and values in a body. */
  readonly maxEntries: number;
  /**
   * Treats an empty body as no body, because stock clients send one, for example to cancel. Default: an empty body is
   * refused.
   */
  readonly isEmptyTaken?: boolean;
}

type JsonServer = Pick<FastifyInstance, "getDefaultJsonParser">;

/** Replaces the JSON parser of `server`. */
export function readJsonBodies(
  server: JsonServer & Pick<FastifyInstance, "removeContentTypeParser" | "addContentTypeParser">,
  { maxEntries, isEmptyTaken = false }: JsonBodies,
): void {
  const read = jsonReader(server, maxEntries);
  server.removeContentTypeParser("application/json");
  server.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (request: FastifyRequest, body: Buffer) => {
      refuseEncoded(request);
      if (isEmptyTaken && body.length === 0) return undefined;
      return read(request, body);
    },
  );
}

/** Throws `unsupported_media_type` for a compressed body. */
export function refuseEncoded({ headers }: FastifyRequest): void {
  const encoding = headers["content-encoding"];
  if (encoding === undefined || encoding.toLowerCase() === "identity") return;
  throw new AppError(
    "unsupported_media_type",
    `The body is encoded (Content-Encoding: ${encoding.slice(0, 64)}). Send it without an encoding.`,
  );
}

/**
 * Returns a function that parses the JSON text of a request. It throws `invalid_request`, `payload_too_large`, and Fastify's
 * error for a text that is not JSON.
 */
export function jsonReader(
  server: JsonServer,
  maxEntries: number,
): (request: FastifyRequest, text: Buffer) => Promise<unknown> {
  const parse = server.getDefaultJsonParser("error", "error");
  return async (request, text) => {
    if (text.length > LARGE_BYTES) await ownTick(tenantOf(request));
    refuseOversized(text, maxEntries);
    const value = await new Promise((resolve, reject) => {
      void parse(request, text.toString(), (error, parsed) => (error ? reject(error) : resolve(parsed)));
    });
    if (text.length > LARGE_BYTES) {
      if (typeof value === "object" && value !== null) large.add(value);
      // The steps after parsing may take as long as parsing.
      await ownTick(tenantOf(request));
    }
    return value;
  };
}

function refuseOversized(text: Buffer, maxEntries: number): void {
  const { entries, widest, depth } = jsonSize(text);
  if (depth > MAX_DEPTH)
    throw new AppError(
      "invalid_request",
      `Invalid body: it must not be nested more than ${MAX_DEPTH} levels deep; it has ${depth} levels.`,
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
}
