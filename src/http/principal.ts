// Who is asking. Without authentication everybody is the same user, which is why the server then listens on
// this machine only and answers nobody who came here under another name.

import type { FastifyRequest } from "fastify";
import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";

const LOCAL_USER: Owner = { tenant: "default", user: "default" };

export function ownerOf(_request: FastifyRequest): Owner {
  return LOCAL_USER;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** A web page that gave its own name our address (DNS rebinding) must not reach an open server. */
export async function refuseForeignNames(request: FastifyRequest): Promise<void> {
  const { host } = request.headers;
  if (host === undefined || LOOPBACK.test(host)) return;
  throw new AppError(
    "forbidden",
    "This server has no authentication and answers only to `localhost`. Address it by that name.",
  );
}

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
const OWN_PAGES: ReadonlySet<string | undefined> = new Set([undefined, "same-origin", "none"]);

/** A web page from elsewhere may send a request without a body, though it never sees the answer. */
export async function refuseForeignPages(request: FastifyRequest): Promise<void> {
  const site = request.headers["sec-fetch-site"];
  if (SAFE_METHODS.has(request.method) || OWN_PAGES.has(typeof site === "string" ? site : undefined)) return;
  throw new AppError("forbidden", "Pages of other sites may not change anything here.");
}
