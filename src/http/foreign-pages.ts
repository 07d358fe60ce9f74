// Web pages of other sites. What a browser adds by itself to every request, such as a gateway's cookie, must not
// give them the rights of whoever looks at them.

import type { FastifyRequest } from "fastify";
import { AppError } from "../core/errors.ts";

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const OWN_PAGES: ReadonlySet<unknown> = new Set([undefined, "same-origin", "none"]);

/**
 * A page from elsewhere may send a request without a body, though it never sees the answer. Those of `origins` may
 * send any.
 */
export function refuseForeignPages(origins: readonly string[]): (request: FastifyRequest) => Promise<void> {
  return async ({ method, headers }) => {
    if (SAFE_METHODS.has(method) || OWN_PAGES.has(headers["sec-fetch-site"])) return;
    if (headers.origin !== undefined && origins.includes(headers.origin)) return;
    throw new AppError("forbidden", "Pages of other sites may not change anything here.");
  };
}
