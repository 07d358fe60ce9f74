// The scope that each route requires. The server does not start with a route that is missing here.

import { AppError } from "../../core/errors.ts";
import type { Principal, Scope } from "./principal.ts";

/** `public`: no authentication. `stream`: `read`, also with a stream ticket. */
export type Access = Scope | "public" | "stream";

const ROUTES: Readonly<Record<string, Access>> = {
  "GET /health": "public",
  "GET /ready": "public",
  "GET /": "public",
  "GET /docs": "public",
  "GET /docs/:asset": "public",
  "GET /openapi.yaml": "public",

  "GET /agents": "read",
  "GET /agents/:name": "read",
  "GET /agents/:name/overrides": "read",
  "PATCH /agents/:name/overrides": "run",
  "DELETE /agents/:name/overrides": "run",

  "POST /threads": "run",
  "GET /threads": "read",
  "GET /threads/:thread_id": "read",
  "PATCH /threads/:thread_id": "run",
  "DELETE /threads/:thread_id": "run",
  "GET /threads/:thread_id/messages": "read",
  "DELETE /threads/:thread_id/messages": "run",
  "GET /threads/:thread_id/state": "read",
  "GET /threads/:thread_id/events": "stream",
  "POST /threads/:thread_id/fork": "run",
  "POST /threads/:thread_id/title": "run",
  "GET /threads/:thread_id/usage": "read",

  "POST /threads/:thread_id/runs": "run",
  "GET /threads/:thread_id/runs": "read",
  "GET /threads/:thread_id/runs/:run_id": "read",
  "GET /threads/:thread_id/runs/:run_id/events": "stream",
  "GET /threads/:thread_id/runs/:run_id/trace": "read",
  "POST /threads/:thread_id/runs/:run_id/cancel": "run",
  "POST /threads/:thread_id/runs/:run_id/messages": "run",

  "POST /threads/:thread_id/runs/:run_id/resume": "run",
  "GET /threads/:thread_id/interrupts": "read",
  "GET /interrupts": "read",

  "GET /threads/:thread_id/permissions": "read",
  "POST /threads/:thread_id/permissions": "run",
  "DELETE /threads/:thread_id/permissions": "run",
  "DELETE /threads/:thread_id/permissions/:id": "run",
  "GET /agents/:name/permissions": "read",
  "POST /agents/:name/permissions": "run",
  "DELETE /agents/:name/permissions/:id": "run",

  "GET /tools": "read",
  "POST /tools": "tools",
  "DELETE /tools/:name": "tools",
  // The token in the address is the credential.
  "POST /tool-results/:token": "public",

  "GET /backend": "read",
  "POST /backend/start": "run",
  "POST /backend/stop": "run",
  "POST /backend/restart": "run",
  "GET /backend/files/*": "read",
  "PUT /backend/files/*": "run",
  "DELETE /backend/files/*": "run",

  "GET /events": "stream",
  "POST /tickets": "read",
  "GET /usage": "read",

  "POST /ai-sdk/:agent/chat": "run",
  "GET /ai-sdk/:agent/chat/:id/stream": "read",
  "POST /ai-sdk/:agent/chat/:id/stop": "run",
  "GET /ai-sdk/:agent/chat/:id/messages": "read",

  "GET /v1/models": "read",
  "GET /v1/models/:model": "read",
  "POST /v1/chat/completions": "run",
};

/** The paths of the routes that are streams: what a ticket may be for. */
export const STREAM_PATH = /^\/(?:events|threads\/[\w-]{1,128}(?:\/runs\/[\w-]{1,128})?\/events)$/;

/** Undefined when the route is not in the table. */
export function accessOf(method: string, route: string): Access | undefined {
  // A browser asks before it sends what another site's page wants, and says nothing of who that is for.
  if (method === "OPTIONS") return "public";
  return ROUTES[`${method === "HEAD" ? "GET" : method} ${route}`];
}

/** Throws `forbidden`. */
export function requireScope({ scopes }: Principal, scope: Scope): void {
  if (scopes.includes(scope)) return;
  throw new AppError("forbidden", `This needs the scope \`${scope}\`, which your credentials do not have.`, {
    details: { scope },
  });
}
