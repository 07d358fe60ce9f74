// The audit trail's name for each route's action. The server does not start if a route is missing here.

/**
 * `change` and `view` are always recorded; `view` reads other users' data. `read` reads the user's own data, and `run`
 * starts or steers a run: both are recorded if the settings enable it, and whenever they are refused. `told`: the
 * engine records successful actions. `none`: never recorded.
 */
type RecordKind = "change" | "view" | "read" | "run" | "told" | "none";

/** Stands for the id in the response. */
export const MADE = "(made)";

/** How the action is recorded, its name, and the path parameter with the target's id. */
export type RouteAction = readonly [as: RecordKind, action: string, id?: string];

const NONE: RouteAction = ["none", ""];

const OWN: Readonly<Record<string, RouteAction>> = {
  "GET /health": NONE,
  "GET /ready": NONE,
  "GET /metrics": NONE,
  "GET /": NONE,
  "GET /page/:asset": NONE,
  "GET /docs": NONE,
  "GET /docs/:asset": NONE,
  "GET /openapi.yaml": NONE,
  "GET /openapi.json": NONE,
  "GET /sign-in": NONE,
  "GET /me": NONE,

  "GET /agents": ["read", "agent.list"],
  "GET /agents/:name": ["read", "agent.read", "name"],
  "GET /agents/:name/tools": ["read", "agent.read", "name"],
  "GET /agents/:name/prompt": ["view", "agent.read_prompt", "name"],
  "GET /agents/:name/overrides": ["read", "override.read", "name"],
  "PATCH /agents/:name/overrides": ["change", "override.update", "name"],
  "DELETE /agents/:name/overrides": ["change", "override.delete", "name"],

  "POST /threads": ["change", "thread.create", MADE],
  "GET /threads": ["read", "thread.list"],
  "GET /threads/:thread_id": ["read", "thread.read", "thread_id"],
  "PATCH /threads/:thread_id": ["change", "thread.update", "thread_id"],
  "DELETE /threads/:thread_id": ["change", "thread.delete", "thread_id"],
  "GET /threads/:thread_id/messages": ["read", "thread.read", "thread_id"],
  "DELETE /threads/:thread_id/messages": ["change", "thread.clear", "thread_id"],
  "GET /threads/:thread_id/state": ["read", "thread.read", "thread_id"],
  "GET /threads/:thread_id/events": ["read", "thread.follow", "thread_id"],
  "POST /threads/:thread_id/fork": ["change", "thread.fork", "thread_id"],
  "GET /threads/:thread_id/branches": ["read", "thread.read", "thread_id"],
  "POST /threads/:thread_id/branches/:branch_id/restore": ["change", "thread.restore", "thread_id"],
  "POST /threads/:thread_id/shares": ["change", "thread.share", "thread_id"],
  "GET /threads/:thread_id/shares": ["read", "thread.read", "thread_id"],
  "DELETE /threads/:thread_id/shares/:share_id": ["change", "thread.unshare", "thread_id"],
  "GET /shared/:user/:thread_id/:share_id": ["view", "thread.read_shared", "thread_id"],
  "GET /shared/:user/:thread_id/:share_id/messages": ["view", "thread.read_shared", "thread_id"],
  "GET /threads/:thread_id/feedback": ["read", "feedback.read", "thread_id"],
  "PUT /threads/:thread_id/messages/:message_id/feedback": ["change", "feedback.update", "message_id"],
  "DELETE /threads/:thread_id/messages/:message_id/feedback": ["change", "feedback.delete", "message_id"],
  "POST /threads/:thread_id/title": ["change", "thread.update", "thread_id"],
  "GET /threads/:thread_id/usage": ["read", "usage.read", "thread_id"],

  "GET /runs": ["read", "run.list"],
  "POST /runs": ["run", "run.start"],
  "POST /runs/batch": ["run", "run.start"],
  "POST /threads/:thread_id/runs": ["run", "thread.run", "thread_id"],
  "GET /threads/:thread_id/runs": ["read", "thread.read", "thread_id"],
  "GET /threads/:thread_id/runs/:run_id": ["read", "run.read", "run_id"],
  "GET /threads/:thread_id/runs/:run_id/events": ["read", "run.follow", "run_id"],
  "GET /threads/:thread_id/runs/:run_id/trace": ["read", "run.read", "run_id"],
  "GET /threads/:thread_id/runs/:run_id/requests/:n": ["read", "run.read", "run_id"],
  "POST /threads/:thread_id/runs/:run_id/cancel": ["change", "run.cancel", "run_id"],
  "POST /threads/:thread_id/runs/:run_id/messages": ["run", "run.steer", "run_id"],
  "POST /threads/:thread_id/runs/:run_id/resume": ["told", "run.answer", "run_id"],
  "GET /threads/:thread_id/interrupts": ["read", "thread.read", "thread_id"],
  "GET /interrupts": ["read", "interrupt.list"],

  "GET /schedules": ["read", "schedule.list"],
  "PUT /schedules/:schedule_id": ["change", "schedule.update", "schedule_id"],
  "GET /schedules/:schedule_id": ["read", "schedule.read", "schedule_id"],
  "DELETE /schedules/:schedule_id": ["change", "schedule.delete", "schedule_id"],
  "POST /schedules/preview": ["read", "schedule.preview"],
  "POST /schedules/:schedule_id/run": ["change", "schedule.run", "schedule_id"],

  "GET /threads/:thread_id/permissions": ["read", "permission.read", "thread_id"],
  "POST /threads/:thread_id/permissions": ["change", "permission.create", MADE],
  "DELETE /threads/:thread_id/permissions": ["change", "permission.delete_all", "thread_id"],
  "DELETE /threads/:thread_id/permissions/:id": ["change", "permission.delete", "id"],
  "GET /agents/:name/permissions": ["read", "permission.read", "name"],
  "POST /agents/:name/permissions": ["change", "permission.create", MADE],
  "DELETE /agents/:name/permissions/:id": ["change", "permission.delete", "id"],

  "GET /tools": ["read", "tool.list"],
  "POST /tools": ["change", "tool.create", MADE],
  "PATCH /tools/:name": ["change", "tool.update", "name"],
  "DELETE /tools/:name": ["change", "tool.delete", "name"],
  "POST /tools/:name/try": ["change", "tool.try", "name"],
  "POST /tool-results/:token": NONE,

  "GET /me/connections": ["read", "connection.list"],
  "GET /me/connections/:connection_id": ["read", "connection.read", "connection_id"],
  "PUT /me/connections/:connection_id": ["change", "connection.update", "connection_id"],
  "DELETE /me/connections/:connection_id": ["change", "connection.delete", "connection_id"],
  "POST /me/connections/:connection_id/authorize": ["change", "connection.authorize", "connection_id"],
  // The flow itself records the account that it connects.
  "GET /oauth/start": NONE,
  "GET /oauth/continue": NONE,
  "GET /oauth/callback": NONE,
  "GET /oauth/client-metadata.json": NONE,

  "GET /webhooks": ["read", "webhook.list"],
  "POST /webhooks": ["change", "webhook.create", MADE],
  "GET /webhooks/:webhook_id": ["read", "webhook.read", "webhook_id"],
  "PUT /webhooks/:webhook_id": ["change", "webhook.update", "webhook_id"],
  "DELETE /webhooks/:webhook_id": ["change", "webhook.delete", "webhook_id"],
  "POST /webhooks/:webhook_id/rotate": ["change", "webhook.rotate", "webhook_id"],
  "POST /webhooks/:webhook_id/test": ["change", "webhook.test", "webhook_id"],
  "GET /webhooks/:webhook_id/deliveries": ["read", "webhook.read", "webhook_id"],
  "POST /webhooks/:webhook_id/deliveries/:delivery_id/send": ["change", "webhook.send", "webhook_id"],
  "GET /triggers": ["read", "trigger.list"],
  "POST /triggers": ["change", "trigger.create", MADE],
  "GET /triggers/:trigger_id": ["read", "trigger.read", "trigger_id"],
  "PUT /triggers/:trigger_id": ["change", "trigger.update", "trigger_id"],
  "DELETE /triggers/:trigger_id": ["change", "trigger.delete", "trigger_id"],
  "POST /triggers/:trigger_id/rotate": ["change", "trigger.rotate", "trigger_id"],
  "POST /triggers/:trigger_id/test": ["read", "trigger.test", "trigger_id"],
  // The trigger itself records its runs.
  "POST /hooks/:address": NONE,

  "GET /backend": ["read", "backend.read"],
  "POST /backend/start": ["change", "backend.start"],
  "POST /backend/stop": ["change", "backend.stop"],
  "POST /backend/restart": ["change", "backend.restart"],
  "GET /backend/files": ["read", "file.list"],
  "GET /backend/files/*": ["read", "file.read", "*"],
  "PUT /backend/files/*": ["change", "file.update", "*"],
  "DELETE /backend/files/*": ["change", "file.delete", "*"],

  "GET /events": ["read", "event.follow"],
  "POST /tickets": NONE,
  "GET /usage": ["read", "usage.read"],
};

const OF_ADMINS: Readonly<Record<string, RouteAction>> = {
  "POST /admin/backup": ["change", "backup.create"],
  "DELETE /admin/engines/:engine": ["change", "engine.delete", "engine"],
  "GET /admin/audit": ["view", "audit.read"],
  "GET /admin/tenants": ["view", "tenant.list"],
  "GET /admin/users": ["view", "user.list"],
  "GET /admin/runs": ["view", "run.list"],
  "GET /admin/interrupts": ["view", "interrupt.list"],
  "GET /admin/sandboxes": ["view", "sandbox.list"],
  "GET /admin/usage": ["view", "usage.read"],
  "GET /admin/keys": ["view", "key.list"],
  "POST /admin/keys": ["change", "key.create", MADE],
  "POST /admin/keys/:key_id/revoke": ["change", "key.revoke", "key_id"],
  "GET /admin/connections": ["view", "connection.list"],
  "GET /admin/connections/:connection_id": ["view", "connection.read", "connection_id"],
  "PUT /admin/connections/:connection_id": ["change", "connection.update", "connection_id"],
  "DELETE /admin/connections/:connection_id": ["change", "connection.delete", "connection_id"],
  "POST /admin/connections/:connection_id/authorize": ["change", "connection.authorize", "connection_id"],
  "GET /admin/webhooks": ["view", "webhook.list"],
  "POST /admin/webhooks": ["change", "webhook.create", MADE],
  "GET /admin/webhooks/:webhook_id": ["view", "webhook.read", "webhook_id"],
  "PUT /admin/webhooks/:webhook_id": ["change", "webhook.update", "webhook_id"],
  "DELETE /admin/webhooks/:webhook_id": ["change", "webhook.delete", "webhook_id"],
  "POST /admin/webhooks/:webhook_id/rotate": ["change", "webhook.rotate", "webhook_id"],
  "POST /admin/webhooks/:webhook_id/test": ["change", "webhook.test", "webhook_id"],
  "GET /admin/webhooks/:webhook_id/deliveries": ["view", "webhook.read", "webhook_id"],
  "POST /admin/webhooks/:webhook_id/deliveries/:delivery_id/send": ["change", "webhook.send", "webhook_id"],
  "POST /admin/tenants/:tenant/users/:user/threads/:thread_id/runs/:run_id/cancel": [
    ...(["change", "run.cancel", "run_id"] as const),
  ],
  "DELETE /admin/tenants/:tenant/users/:user": ["change", "user.delete", "user"],
  "GET /admin/tenants/:tenant/users/:user/export": ["view", "user.export", "user"],
};

const OF_WIRES: Readonly<Record<string, RouteAction>> = {
  "POST /ai-sdk/:agent/chat": ["run", "run.start"],
  "GET /ai-sdk/:agent/chat/:id/stream": ["read", "thread.follow", "id"],
  "POST /ai-sdk/:agent/chat/:id/stop": ["change", "thread.stop", "id"],
  "GET /ai-sdk/:agent/chat/:id/messages": ["read", "thread.read", "id"],

  "GET /ag-ui/info": ["read", "agent.list"],
  "POST /ag-ui/agent/:agent/run": ["run", "run.start"],
  "POST /ag-ui/agent/:agent/connect": ["read", "agent.connect", "agent"],
  "POST /ag-ui/agent/:agent/stop/:thread_id": ["change", "thread.stop", "thread_id"],

  "GET /v1/models": ["read", "agent.list"],
  "GET /v1/models/:model": ["read", "agent.read", "model"],
  "POST /v1/chat/completions": ["run", "run.start"],
  "POST /v1/responses": ["run", "run.start"],
  "GET /v1/responses/:response_id": ["read", "response.read", "response_id"],
  "POST /v1/responses/:response_id/cancel": ["change", "response.cancel", "response_id"],
  "DELETE /v1/responses/:response_id": ["change", "response.delete", "response_id"],
  "GET /v1/responses/:response_id/input_items": ["read", "response.read", "response_id"],
  "POST /v1/conversations": ["change", "thread.create", MADE],
  "GET /v1/conversations/:conversation_id": ["read", "thread.read", "conversation_id"],
  "DELETE /v1/conversations/:conversation_id": ["change", "thread.delete", "conversation_id"],
  "POST /v1/conversations/:conversation_id": ["change", "thread.update", "conversation_id"],
  "GET /v1/conversations/:conversation_id/items": ["read", "thread.read", "conversation_id"],
  "POST /v1/conversations/:conversation_id/items": ["change", "thread.append", "conversation_id"],
  "GET /v1/conversations/:conversation_id/items/:item_id": ["read", "thread.read", "conversation_id"],
  "DELETE /v1/conversations/:conversation_id/items/:item_id": ["change", "message.delete", "item_id"],

  "GET /langgraph/ok": NONE,
  "GET /langgraph/info": NONE,
  "POST /langgraph/assistants/search": ["read", "agent.list"],
  "POST /langgraph/assistants/count": ["read", "agent.list"],
  "GET /langgraph/assistants/:assistant_id": ["read", "agent.read", "assistant_id"],
  "GET /langgraph/assistants/:assistant_id/graph": ["read", "agent.read", "assistant_id"],
  "GET /langgraph/assistants/:assistant_id/schemas": ["read", "agent.read", "assistant_id"],
  "GET /langgraph/assistants/:assistant_id/subgraphs": ["read", "agent.read", "assistant_id"],
  "POST /langgraph/threads": ["change", "thread.create"],
  "POST /langgraph/threads/search": ["read", "thread.list"],
  "POST /langgraph/threads/count": ["read", "thread.list"],
  "GET /langgraph/threads/:thread_id": ["read", "thread.read", "thread_id"],
  "PATCH /langgraph/threads/:thread_id": ["change", "thread.update", "thread_id"],
  "DELETE /langgraph/threads/:thread_id": ["change", "thread.delete", "thread_id"],
  "POST /langgraph/threads/:thread_id/copy": ["change", "thread.fork", "thread_id"],
  "GET /langgraph/threads/:thread_id/state": ["read", "thread.read", "thread_id"],
  "POST /langgraph/threads/:thread_id/state": ["change", "thread.update", "thread_id"],
  "GET /langgraph/threads/:thread_id/state/:checkpoint_id": ["read", "thread.read", "thread_id"],
  "POST /langgraph/threads/:thread_id/state/checkpoint": ["read", "thread.read", "thread_id"],
  "POST /langgraph/threads/:thread_id/history": ["read", "thread.read", "thread_id"],
  "POST /langgraph/threads/:thread_id/runs": ["run", "thread.run", "thread_id"],
  "POST /langgraph/threads/:thread_id/runs/stream": ["run", "thread.run", "thread_id"],
  "POST /langgraph/threads/:thread_id/runs/wait": ["run", "thread.run", "thread_id"],
  "POST /langgraph/threads/:thread_id/commands": ["run", "thread.run", "thread_id"],
  "POST /langgraph/threads/:thread_id/stream/events": ["read", "thread.follow", "thread_id"],
  "GET /langgraph/threads/:thread_id/runs": ["read", "thread.read", "thread_id"],
  "GET /langgraph/threads/:thread_id/runs/:run_id": ["read", "run.read", "run_id"],
  "GET /langgraph/threads/:thread_id/runs/:run_id/stream": ["read", "run.follow", "run_id"],
  "GET /langgraph/threads/:thread_id/runs/:run_id/join": ["read", "run.follow", "run_id"],
  "POST /langgraph/threads/:thread_id/runs/:run_id/cancel": ["change", "run.cancel", "run_id"],
  "POST /langgraph/runs": ["run", "run.start"],
  "POST /langgraph/runs/stream": ["run", "run.start"],
  "POST /langgraph/runs/wait": ["run", "run.start"],
  "POST /langgraph/runs/batch": ["run", "run.start"],
  "POST /langgraph/runs/cancel": ["change", "run.cancel"],
  "POST /langgraph/runs/crons": ["change", "schedule.update"],
  "POST /langgraph/threads/:thread_id/runs/crons": ["change", "schedule.update"],
  "PATCH /langgraph/runs/crons/:cron_id": ["change", "schedule.update", "cron_id"],
  "DELETE /langgraph/runs/crons/:cron_id": ["change", "schedule.delete", "cron_id"],
  "POST /langgraph/runs/crons/search": ["read", "schedule.list"],
  "POST /langgraph/runs/crons/count": ["read", "schedule.list"],

  "POST /mcp": ["run", "mcp.request"],
  "GET /mcp": ["read", "mcp.follow"],
  "DELETE /mcp": ["run", "mcp.end"],

  "GET /.well-known/agent-card.json": NONE,
  "GET /.well-known/agent.json": NONE,
  "GET /a2a/:agent/.well-known/agent-card.json": NONE,
  "GET /a2a/:agent/.well-known/agent.json": NONE,
  "POST /a2a/:agent": ["run", "a2a.request", "agent"],
};

const ROUTES = { ...OWN, ...OF_ADMINS, ...OF_WIRES };

/**
 * Returns undefined for a route that is not in the table. Requests to plugin routes, which are not in the table, count
 * as changes.
 */
export function actionOf(method: string, route: string): RouteAction | undefined {
  if (method === "OPTIONS") return NONE;
  const asked = method === "HEAD" ? "GET" : method;
  if (route.startsWith("/plugins/")) return [asked === "GET" ? "read" : "change", "plugin.request"];
  return ROUTES[`${asked} ${route}`];
}
