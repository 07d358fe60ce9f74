// The scope that each route requires. The server does not start if a route is missing here.

import { AppError } from "../../agent/core/errors.ts";
import type { Principal, Scope } from "./principal.ts";

/** `public`: no authentication. `any`: any credentials. `ticket`: `read`, or a ticket. `manage`: `admin` or `operator`. */
export type RouteAccess = Scope | "public" | "any" | "ticket" | "manage";

const ROUTES: Readonly<Record<string, RouteAccess>> = {
  "GET /health": "public",
  "GET /ready": "public",
  // The route itself requires the metrics token or the `admin` scope.
  "GET /metrics": "public",
  "GET /": "public",
  "GET /page/:asset": "public",
  "GET /docs": "public",
  "GET /docs/:asset": "public",
  "GET /openapi.yaml": "public",
  "GET /openapi.json": "public",

  "GET /sign-in": "public",
  "GET /me": "any",

  "GET /agents": "read",
  "GET /agents/:name": "read",
  "GET /agents/:name/tools": "read",
  "GET /agents/:name/prompt": "manage",
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
  "GET /threads/:thread_id/events": "ticket",
  "POST /threads/:thread_id/fork": "run",
  "GET /threads/:thread_id/branches": "read",
  "POST /threads/:thread_id/branches/:branch_id/restore": "run",
  "POST /threads/:thread_id/shares": "run",
  "GET /threads/:thread_id/shares": "read",
  "DELETE /threads/:thread_id/shares/:share_id": "run",
  "GET /shared/:user/:thread_id/:share_id": "read",
  "GET /shared/:user/:thread_id/:share_id/messages": "read",
  "GET /threads/:thread_id/feedback": "read",
  "PUT /threads/:thread_id/messages/:message_id/feedback": "run",
  "DELETE /threads/:thread_id/messages/:message_id/feedback": "run",
  "POST /threads/:thread_id/title": "run",
  "GET /threads/:thread_id/usage": "read",

  "GET /runs": "read",
  "POST /runs": "run",
  "POST /runs/batch": "run",
  "POST /threads/:thread_id/runs": "run",
  "GET /threads/:thread_id/runs": "read",
  "GET /threads/:thread_id/runs/:run_id": "read",
  "GET /threads/:thread_id/runs/:run_id/events": "ticket",
  "GET /threads/:thread_id/runs/:run_id/trace": "read",
  "GET /threads/:thread_id/runs/:run_id/requests/:n": "read",
  "POST /threads/:thread_id/runs/:run_id/cancel": "run",
  "POST /threads/:thread_id/runs/:run_id/messages": "run",

  "GET /schedules": "read",
  "PUT /schedules/:schedule_id": "run",
  "GET /schedules/:schedule_id": "read",
  "DELETE /schedules/:schedule_id": "run",
  "POST /schedules/:schedule_id/run": "run",
  "POST /schedules/preview": "read",

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
  "PATCH /tools/:name": "tools",
  "DELETE /tools/:name": "tools",
  "POST /tools/:name/try": "tools",
  // The token in the path is the credential.
  "POST /tool-results/:token": "public",

  "GET /webhooks": "read",
  "POST /webhooks": "run",
  "GET /webhooks/:webhook_id": "read",
  "PUT /webhooks/:webhook_id": "run",
  "DELETE /webhooks/:webhook_id": "run",
  "POST /webhooks/:webhook_id/rotate": "run",
  "POST /webhooks/:webhook_id/test": "run",
  "GET /webhooks/:webhook_id/deliveries": "read",
  "POST /webhooks/:webhook_id/deliveries/:delivery_id/send": "run",
  "GET /me/connections": "read",
  "GET /me/connections/:connection_id": "read",
  "PUT /me/connections/:connection_id": "run",
  "DELETE /me/connections/:connection_id": "run",
  "POST /me/connections/:connection_id/authorize": "run",
  // The browser arrives without credentials. The key in the query, and later a cookie, authorize it.
  "GET /oauth/start": "public",
  "GET /oauth/continue": "public",
  "GET /oauth/callback": "public",
  "GET /oauth/client-metadata.json": "public",
  "GET /triggers": "read",
  "POST /triggers": "run",
  "GET /triggers/:trigger_id": "read",
  "PUT /triggers/:trigger_id": "run",
  "DELETE /triggers/:trigger_id": "run",
  "POST /triggers/:trigger_id/rotate": "run",
  "POST /triggers/:trigger_id/test": "run",
  // The trigger's secret is the credential.
  "POST /hooks/:address": "public",

  "GET /backend": "read",
  "POST /backend/start": "run",
  "POST /backend/stop": "run",
  "POST /backend/restart": "run",
  "GET /backend/files": "read",
  "GET /backend/files/*": "ticket",
  "PUT /backend/files/*": "run",
  "DELETE /backend/files/*": "run",

  "GET /events": "ticket",
  "POST /tickets": "read",
  // The route itself requires `read`, or `admin` for the tenant's usage.
  "GET /usage": "any",

  // The route itself requires `admin` or `operator`, depending on the tenant in the request.
  "POST /admin/backup": "operator",
  "DELETE /admin/engines/:engine": "operator",
  "GET /admin/audit": "manage",
  "GET /admin/tenants": "manage",
  "GET /admin/users": "manage",
  "GET /admin/runs": "manage",
  "GET /admin/interrupts": "manage",
  "GET /admin/sandboxes": "manage",
  "GET /admin/usage": "manage",
  "GET /admin/keys": "manage",
  "POST /admin/keys": "manage",
  "POST /admin/keys/:key_id/revoke": "manage",
  "GET /admin/connections": "manage",
  "GET /admin/connections/:connection_id": "manage",
  "PUT /admin/connections/:connection_id": "manage",
  "DELETE /admin/connections/:connection_id": "manage",
  "POST /admin/connections/:connection_id/authorize": "manage",
  "GET /admin/webhooks": "manage",
  "POST /admin/webhooks": "manage",
  "GET /admin/webhooks/:webhook_id": "manage",
  "PUT /admin/webhooks/:webhook_id": "manage",
  "DELETE /admin/webhooks/:webhook_id": "manage",
  "POST /admin/webhooks/:webhook_id/rotate": "manage",
  "POST /admin/webhooks/:webhook_id/test": "manage",
  "GET /admin/webhooks/:webhook_id/deliveries": "manage",
  "POST /admin/webhooks/:webhook_id/deliveries/:delivery_id/send": "manage",
  "POST /admin/tenants/:tenant/users/:user/threads/:thread_id/runs/:run_id/cancel": "manage",
  "DELETE /admin/tenants/:tenant/users/:user": "manage",
  "GET /admin/tenants/:tenant/users/:user/export": "manage",

  "POST /ai-sdk/:agent/chat": "run",
  "GET /ai-sdk/:agent/chat/:id/stream": "read",
  "POST /ai-sdk/:agent/chat/:id/stop": "run",
  "GET /ai-sdk/:agent/chat/:id/messages": "read",

  "GET /ag-ui/info": "read",
  "POST /ag-ui/agent/:agent/run": "run",
  "POST /ag-ui/agent/:agent/connect": "read",
  "POST /ag-ui/agent/:agent/stop/:thread_id": "run",

  "GET /v1/models": "read",
  "GET /v1/models/:model": "read",
  "POST /v1/chat/completions": "run",
  "POST /v1/responses": "run",
  "GET /v1/responses/:response_id": "read",
  "POST /v1/responses/:response_id/cancel": "run",
  "DELETE /v1/responses/:response_id": "run",
  "GET /v1/responses/:response_id/input_items": "read",
  "POST /v1/conversations": "run",
  "GET /v1/conversations/:conversation_id": "read",
  "DELETE /v1/conversations/:conversation_id": "run",
  "POST /v1/conversations/:conversation_id": "run",
  "GET /v1/conversations/:conversation_id/items": "read",
  "POST /v1/conversations/:conversation_id/items": "run",
  "GET /v1/conversations/:conversation_id/items/:item_id": "read",
  "DELETE /v1/conversations/:conversation_id/items/:item_id": "run",

  "GET /langgraph/ok": "public",
  "GET /langgraph/info": "public",
  "POST /langgraph/assistants/search": "read",
  "POST /langgraph/assistants/count": "read",
  "GET /langgraph/assistants/:assistant_id": "read",
  "GET /langgraph/assistants/:assistant_id/graph": "read",
  "GET /langgraph/assistants/:assistant_id/schemas": "read",
  "GET /langgraph/assistants/:assistant_id/subgraphs": "read",
  "POST /langgraph/threads": "run",
  "POST /langgraph/threads/search": "read",
  "POST /langgraph/threads/count": "read",
  "GET /langgraph/threads/:thread_id": "read",
  "PATCH /langgraph/threads/:thread_id": "run",
  "DELETE /langgraph/threads/:thread_id": "run",
  "POST /langgraph/threads/:thread_id/copy": "run",
  "GET /langgraph/threads/:thread_id/state": "read",
  "POST /langgraph/threads/:thread_id/state": "run",
  "GET /langgraph/threads/:thread_id/state/:checkpoint_id": "read",
  "POST /langgraph/threads/:thread_id/state/checkpoint": "read",
  "POST /langgraph/threads/:thread_id/history": "read",
  "POST /langgraph/threads/:thread_id/runs": "run",
  "POST /langgraph/threads/:thread_id/runs/stream": "run",
  "POST /langgraph/threads/:thread_id/runs/wait": "run",
  "POST /langgraph/threads/:thread_id/commands": "run",
  "POST /langgraph/threads/:thread_id/stream/events": "read",
  "GET /langgraph/threads/:thread_id/runs": "read",
  "GET /langgraph/threads/:thread_id/runs/:run_id": "read",
  "GET /langgraph/threads/:thread_id/runs/:run_id/stream": "read",
  "GET /langgraph/threads/:thread_id/runs/:run_id/join": "read",
  "POST /langgraph/threads/:thread_id/runs/:run_id/cancel": "run",
  "POST /langgraph/runs": "run",
  "POST /langgraph/runs/stream": "run",
  "POST /langgraph/runs/wait": "run",
  "POST /langgraph/runs/batch": "run",
  "POST /langgraph/runs/cancel": "run",
  "POST /langgraph/runs/crons": "run",
  "POST /langgraph/threads/:thread_id/runs/crons": "run",
  "PATCH /langgraph/runs/crons/:cron_id": "run",
  "DELETE /langgraph/runs/crons/:cron_id": "run",
  "POST /langgraph/runs/crons/search": "read",
  "POST /langgraph/runs/crons/count": "read",
  // The wire itself requires `run` for messages that change something.
  "POST /mcp": "read",
  "GET /mcp": "read",
  "DELETE /mcp": "read",

  "GET /.well-known/agent-card.json": "public",
  "GET /.well-known/agent.json": "public",
  "GET /a2a/:agent/.well-known/agent-card.json": "public",
  "GET /a2a/:agent/.well-known/agent.json": "public",
  "POST /a2a/:agent": "read",
};

/** The paths that accept a ticket: streams and files, which browsers request without headers. */
export const TICKET_PATH =
  /^\/(?:events|threads\/[\w-]{1,128}(?:\/runs\/[\w-]{1,128})?\/events|backend\/files\/[^?#\s]{1,4096})$/;

/** The prefix of plugin routes. Each of these routes declares its own access. */
const PLUGINS = "/plugins/";
const ACCESS: ReadonlySet<unknown> = new Set<PluginAccess>([
  "read",
  "run",
  "tools",
  "admin",
  "any",
  "public",
]);

/** The access that a plugin's route may require. */
export type PluginAccess = Exclude<RouteAccess, "ticket" | "manage" | "operator">;

/** Returns undefined for a route that is not in the table, and for a plugin's route with an unknown access. */
export function accessOf(method: string, route: string, config: unknown = {}): RouteAccess | undefined {
  // Preflight requests are public because browsers send them without credentials.
  if (method === "OPTIONS") return "public";
  if (route.startsWith(PLUGINS)) {
    const { access = method === "GET" || method === "HEAD" ? "read" : "run" } = Object(config);
    return ACCESS.has(access) ? access : undefined;
  }
  return ROUTES[`${method === "HEAD" ? "GET" : method} ${route}`];
}

/**
 * The paths where clients look for an OAuth server after their key was refused. They have no route, so every caller
 * gets 404.
 */
const OAUTH = /^\/(?:[^/]{1,64}\/)?\.well-known\/|^\/(?:register|authorize|token)$/;
export const isOauthPath = (path: string): boolean => OAUTH.test(path);

const PATHS = Object.keys(ROUTES).map((route) => {
  const [method = "", url = ""] = route.split(" ");
  const pattern = url.replace(/[.]/g, "\\.").replace(/:\w+/g, "[^/]+").replace("*", ".*");
  return { method, url, pattern: new RegExp(`^${pattern}$`) };
});

/** Returns the routes that match the path, including routes of wires that are not enabled. */
export const routesAt = (path: string): { readonly method: string; readonly url: string }[] =>
  PATHS.filter(({ pattern }) => pattern.test(path)).map(({ method, url }) => ({ method, url }));

/** Throws `forbidden`. */
export function requireScope({ scopes }: Principal, scope: Scope): void {
  if (scopes.includes(scope)) return;
  throw new AppError(
    "forbidden",
    `This request needs the scope \`${scope}\`, which your credentials do not have.`,
    {
      details: { scope },
    },
  );
}
