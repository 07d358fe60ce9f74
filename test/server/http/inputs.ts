// Which of a user's things each input of the API names.

import { fieldsOf, type Operation } from "../../support/openapi.ts";
import type { Things } from "./things.ts";

type Kind = keyof Things;

/** What an input names, by its name or by route and name; `nothing`: no user's thing. */
const INPUTS: Readonly<Record<string, Kind | "nothing">> = {
  thread_id: "thread",
  run_id: "run",
  path: "file",
  after: "event",
  "GET /threads/{thread_id}/messages after": "message",
  "last-event-id": "event",
  "idempotency-key": "key",
  cursor: "threadPage",
  // Whose things an admin asks for; a stranger's are always ada's.
  ...{ tenant: "nothing", user: "nothing" },
  "DELETE /admin/engines/{engine} engine": "nothing",
  // How much to tell, and the form of an answer.
  ...{ verbose: "nothing", output_schema: "nothing", json_schema: "nothing" },
  ...{ schema: "nothing", strict: "nothing" },
  ...Object.fromEntries(
    ["tenants", "users", "runs", "interrupts", "sandboxes", "usage"].map((list) => [
      `GET /admin/${list} cursor`,
      "nothing" as const,
    ]),
  ),
  "GET /admin/audit cursor": "nothing",
  "GET /threads/{thread_id}/runs cursor": "runPage",
  "GET /runs cursor": "allRunsPage",
  "GET /schedules cursor": "nothing",
  in: "nothing",
  "POST /threads/{thread_id}/runs continue": "nothing",
  "POST /threads id": "thread",
  "POST /threads/{thread_id}/fork id": "thread",
  message_id: "message",
  branch_id: "thread",
  share_id: "share",
  ...{ schedule_id: "schedule", cron_id: "schedule" },
  ...{ cron: "nothing", at: "nothing", timezone: "nothing", until: "nothing", paused: "nothing" },
  ...{ overlap: "nothing", catch_up: "nothing", questions: "nothing", thread: "thread" },
  ...{ rating: "nothing", comment: "nothing" },
  ...{ expires_in: "nothing", expires_at: "nothing", scopes: "nothing", key_id: "nothing" },
  "GET /shared/{user}/{thread_id}/{share_id}/messages after": "message",
  replaces: "message",
  parent: "thread",
  "POST /tickets path": "stream",
  "POST /threads/{thread_id}/runs/{run_id}/resume id": "interrupt",
  "DELETE /tools/{name} name": "tool",
  "POST /tools/{name}/try name": "tool",
  "PATCH /tools/{name} name": "tool",
  ...{ webhook_id: "webhook", on: "nothing", ordered: "nothing", paused: "nothing" },
  // Of a webhook, whose id it comes with.
  delivery_id: "nothing",
  "POST /webhooks id": "webhook",
  ...{ "GET /webhooks cursor": "nothing", "GET /webhooks/{webhook_id}/deliveries cursor": "nothing" },
  // What an admin's tenant has.
  ...Object.fromEntries(
    [
      ...["GET /admin/webhooks", "PUT /admin/webhooks/{webhook_id}", "GET /admin/webhooks/{webhook_id}"],
      ...["DELETE /admin/webhooks/{webhook_id}", "POST /admin/webhooks/{webhook_id}/rotate"],
      ...["POST /admin/webhooks/{webhook_id}/test", "GET /admin/webhooks/{webhook_id}/deliveries"],
      "POST /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/send",
    ].map((route) => [`${route} webhook_id`, "nothing" as const]),
  ),
  ...{ "POST /admin/webhooks id": "nothing", "GET /admin/webhooks cursor": "nothing" },
  "GET /admin/webhooks/{webhook_id}/deliveries cursor": "nothing",
  connection_id: "connection",
  ...{ mcp_server_url: "nothing", token: "nothing", access_token: "nothing", refresh: "nothing" },
  ...{ client_id: "nothing", refresh_token: "nothing", token_endpoint: "nothing", client_secret: "nothing" },
  ...{
    token_endpoint_auth: "nothing",
    revocation_endpoint: "nothing",
    resource: "nothing",
    scope: "nothing",
  },
  allowed_hosts: "nothing",
  ...{ secret_name: "nothing", secret_value: "nothing", networking: "nothing" },
  ...{ "GET /me/connections cursor": "nothing", "GET /admin/connections cursor": "nothing" },
  ...Object.fromEntries(
    ["GET", "PUT", "DELETE"].map((method) => [
      `${method} /admin/connections/{connection_id} connection_id`,
      "nothing" as const,
    ]),
  ),
  // The name of an MCP server, the same for all.
  "POST /me/connections/{connection_id}/authorize connection_id": "nothing",
  "POST /admin/connections/{connection_id}/authorize connection_id": "nothing",
  trigger_id: "trigger",
  // The address of a trigger is a credential. A cursor is a place in the asker's own list.
  ...{ address: "nothing", "GET /triggers cursor": "nothing" },
  ...{ verify: "nothing", scheme: "nothing", header: "nothing", prefix: "nothing", encoding: "nothing" },
  ...{ secret: "nothing", filter: "nothing", keep_old_for: "nothing", body: "nothing" },
  "PUT /triggers/{trigger_id} thread": "nothing",
  "POST /triggers thread": "nothing",
  threadId: "thread",
  // AG-UI's runs and answers have ids of the client's own.
  ...{ runId: "nothing", protocolVersion: "nothing", context: "nothing", value: "nothing" },
  ...{ forwardedProps: "nothing", resume: "nothing", payload: "nothing", toolCalls: "nothing" },
  ...{ toolCallId: "nothing", error: "nothing", interruptId: "interrupt" },
  "POST /ag-ui/agent/{agent}/run id": "nothing",
  "POST /ag-ui/agent/{agent}/connect id": "nothing",
  "POST /ai-sdk/{agent}/chat id": "thread",
  ...{ "if-match": "nothing", "if-none-match": "nothing" },
  ...{ channels: "nothing", namespaces: "nothing", depth: "nothing", since: "nothing" },
  ...{ "POST /langgraph/threads/{thread_id}/commands id": "nothing", method: "nothing", params: "nothing" },
  "POST /ai-sdk/{agent}/chat messageId": "message",
  "GET /ai-sdk/{agent}/chat/{id}/stream id": "thread",
  "GET /ai-sdk/{agent}/chat/{id}/messages id": "thread",
  "POST /ai-sdk/{agent}/chat/{id}/stop id": "thread",
  ...{ parts: "nothing", trigger: "nothing", v: "nothing" },
  ...{ stream: "nothing", stream_options: "nothing", include_usage: "nothing", n: "nothing" },
  ...{ max_completion_tokens: "nothing", response_format: "nothing", function: "nothing" },
  ...{ tool_calls: "nothing", tool_call_id: "nothing", arguments: "nothing" },
  ...{ image_url: "nothing", url: "nothing", file: "nothing", file_data: "nothing", filename: "nothing" },
  "POST /v1/chat/completions id": "nothing",
  ...{ reasoning_effort: "nothing", functions: "nothing", "POST /v1/responses user": "nothing" },
  item_id: "message",
  response_id: "response",
  previous_response_id: "response",
  conversation_id: "thread",
  conversation: "thread",
  "POST /v1/responses id": "thread",
  call_id: "interrupt",
  approval_request_id: "interrupt",
  "GET /v1/responses/{response_id}/input_items after": "message",
  "GET /v1/conversations/{conversation_id}/items after": "message",
  ...{ instructions: "nothing", store: "nothing", max_output_tokens: "nothing", reasoning: "nothing" },
  ...{ effort: "nothing", format: "nothing", prompt: "nothing", max_tool_calls: "nothing" },
  ...{ output: "nothing", approve: "nothing", reason: "nothing", starting_after: "nothing" },
  ...{ items: "nothing", order: "nothing", summary: "nothing" },
  ...{ assistant_id: "nothing", graph_id: "nothing", offset: "nothing", if_exists: "nothing" },
  ...{
    supersteps: "nothing",
    updates: "nothing",
    select: "nothing",
    values: "nothing",
    sort_by: "nothing",
    sort_order: "nothing",
  },
  ...{ as_node: "nothing", command: "nothing", resume: "nothing", goto: "nothing", update: "nothing" },
  ...{ config: "nothing", configurable: "nothing", stream_mode: "nothing", stream_subgraphs: "nothing" },
  ...{ multitask_strategy: "nothing", if_not_exists: "nothing", interrupt_before: "nothing" },
  ...{ interrupt_after: "nothing", webhook: "nothing", after_seconds: "nothing", wait: "nothing" },
  ...{ action: "nothing", cancel_on_disconnect: "nothing", checkpoint: "nothing", checkpoint_ns: "nothing" },
  ...{ keep_thread: "nothing", on_completion: "nothing", onCompletion: "nothing" },
  "POST /runs/batch runs": "nothing",
  ...{ end_time: "nothing", enabled: "nothing", on_run_completed: "nothing", schedule: "nothing" },
  ...{ files: "nothing", mime_type: "nothing", mimeType: "nothing", base64: "nothing", source: "nothing" },
  ...{ ids: "thread", run_ids: "run", checkpoint_id: "message", before: "message" },
  // A client chooses the ids of its messages; they are unique in a thread only.
  ...{
    "POST /langgraph/threads/{thread_id}/runs id": "nothing",
    "POST /langgraph/threads/{thread_id}/runs/stream id": "nothing",
    "POST /langgraph/threads/{thread_id}/runs/wait id": "nothing",
    "POST /langgraph/runs id": "nothing",
    "POST /langgraph/runs/batch id": "nothing",
    "POST /langgraph/runs/crons id": "nothing",
    "POST /langgraph/threads/{thread_id}/runs/crons id": "nothing",
    "PATCH /langgraph/runs/crons/{cron_id} id": "nothing",
    "POST /langgraph/runs/stream id": "nothing",
    "POST /langgraph/runs/wait id": "nothing",
  },
  ...{ "POST /mcp id": "nothing", jsonrpc: "nothing", method: "nothing", params: "nothing" },
  ...{ "POST /a2a/{agent} id": "nothing", "a2a-version": "nothing" },
  ...{ "mcp-session-id": "nothing", "mcp-protocol-version": "nothing" },
  // Made of the call that it is about: the same for all who answered the same.
  "DELETE /agents/{name}/permissions/{id} id": "nothing",
  "DELETE /threads/{thread_id}/permissions/{id} id": "nothing",
  // What a person's rule is called, and what it says.
  ...{
    "POST /threads/{thread_id}/permissions id": "nothing",
    "POST /agents/{name}/permissions id": "nothing",
  },
  ...{ allow: "nothing", deny: "nothing", ask: "nothing", command_prefix: "nothing", regex: "nothing" },
  ...{ arguments: "nothing", matcher: "nothing", tool: "nothing", all: "nothing", priority: "nothing" },
  // Who has a ticket, or the address of a call's result, may use it: they are credentials.
  ...{ ticket: "nothing", token: "nothing" },
  // Agents and models are the server's, the same for all.
  ...{ agent: "nothing", name: "nothing", model: "nothing" },
  ...{
    children: "nothing",
    limit: "nothing",
    status: "nothing",
    q: "nothing",
    heartbeat: "nothing",
    days: "nothing",
    of: "nothing",
  },
  ...{ title: "nothing", metadata: "nothing", mode: "nothing", input: "nothing", messages: "nothing" },
  ...{ role: "nothing", content: "nothing", type: "nothing", text: "nothing", media_type: "nothing" },
  ...{ data: "nothing", temperature: "nothing", max_tokens: "nothing", thinking: "nothing" },
  ...{ tool_choice: "nothing", calls: "nothing" },
  ...{ on_busy: "nothing", on_disconnect: "nothing", background: "nothing" },
  ...{ answers: "nothing", decision: "nothing", args: "nothing", message: "nothing", remember: "nothing" },
  remember_as: "nothing",
  ...{ tools: "nothing", description: "nothing", parameters: "nothing", annotations: "nothing" },
  ...{ callback_url: "nothing", headers: "nothing", timeout_ms: "nothing", idempotent: "nothing" },
  ...{ agents: "nothing", read_only: "nothing", destructive: "nothing", category: "nothing" },
  ...{ requires_permission: "nothing" },
  ...{ hooks: "nothing", skills: "nothing", paths: "nothing", include: "nothing", exclude: "nothing" },
};

const CONNECTION = { type: "static_bearer", mcp_server_url: "https://mcp.example.com/", token: "token" };
const WEBHOOK = { url: "https://hooks.example.com/", on: ["schedule.paused"] };

const LANGGRAPH_RUN = {
  assistant_id: "assistant",
  if_not_exists: "create",
  multitask_strategy: "reject",
  input: { messages: [{ type: "human", content: "hello" }] },
};

const LANGGRAPH_CRON = {
  ...{ assistant_id: "assistant", schedule: "0 0 29 2 *" },
  input: { messages: [{ type: "human", content: "hello" }] },
};

const TRIGGER = { agent: "assistant", verify: { scheme: "github" }, input: "{{body}}" };

/** Bodies; what is to be named in one stands there in braces, unless it may be left out. */
export const BODIES: Readonly<Record<string, object>> = {
  "POST /threads": { id: "{id}" },
  "PATCH /threads/{thread_id}": { title: "Mine now" },
  "POST /threads/{thread_id}/fork": { id: "{id}" },
  "POST /threads/{thread_id}/title": {},
  "PATCH /agents/{name}/overrides": { hooks: { todos: false } },
  "POST /threads/{thread_id}/runs": { input: "hello" },
  "POST /runs": { input: "hello", keep_thread: false },
  "POST /runs/batch": { runs: [{ input: "hello", keep_thread: false }] },
  "POST /threads/{thread_id}/runs/{run_id}/cancel": {},
  "POST /threads/{thread_id}/runs/{run_id}/messages": { input: "hello" },
  "POST /threads/{thread_id}/runs/{run_id}/resume": {
    answers: [{ id: "{id}", decision: "respond", message: "no" }],
  },
  "POST /threads/{thread_id}/permissions": { allow: "execute" },
  "POST /agents/{name}/permissions": { allow: "execute" },
  "POST /threads/{thread_id}/shares": { expires_in: 3600 },
  "PUT /threads/{thread_id}/messages/{message_id}/feedback": { rating: "up" },
  "PUT /schedules/{schedule_id}": { cron: "0 9 * * *", input: "hello", thread: "{thread}" },
  "POST /schedules/preview": { cron: "0 9 * * *" },
  "POST /tickets": { path: "{path}" },
  "POST /tools": {
    ...{ name: "mine", description: "Mine.", callback_url: "https://tools.example.com/" },
    parameters: { type: "object" },
  },
  "PATCH /tools/{name}": { description: "Mine now." },
  "POST /tool-results/{token}": { result: "found" },
  "POST /triggers": TRIGGER,
  "PUT /triggers/{trigger_id}": TRIGGER,
  "POST /triggers/{trigger_id}/rotate": {},
  "POST /triggers/{trigger_id}/test": { body: {} },
  "PUT /me/connections/{connection_id}": CONNECTION,
  "PUT /admin/connections/{connection_id}": CONNECTION,
  "POST /webhooks": { id: "{id}", ...WEBHOOK },
  "PUT /webhooks/{webhook_id}": WEBHOOK,
  "POST /admin/webhooks": WEBHOOK,
  "PUT /admin/webhooks/{webhook_id}": WEBHOOK,
  "POST /v1/responses": { model: "assistant", input: "hello" },
  "POST /v1/conversations": {},
  "POST /v1/conversations/{conversation_id}/items": { items: [{ role: "user", content: "hello" }] },
  "POST /v1/chat/completions": { model: "assistant", messages: [{ role: "user", content: "hello" }] },
  "POST /langgraph/assistants/search": {},
  "POST /langgraph/assistants/count": {},
  "POST /ag-ui/agent/{agent}/run": {
    ...{ threadId: "{threadId}", runId: "r1" },
    messages: [{ id: "m1", role: "user", content: "hello" }],
  },
  "POST /ag-ui/agent/{agent}/connect": { threadId: "{threadId}", runId: "r1", messages: [] },
  "POST /ag-ui/agent/{agent}/stop/{thread_id}": {},
  "POST /langgraph/threads": { thread_id: "{thread_id}" },
  "POST /langgraph/threads/search": { ids: ["{ids}"] },
  "POST /langgraph/threads/count": { ids: ["{ids}"] },
  "PATCH /langgraph/threads/{thread_id}": { metadata: { mine: true } },
  "POST /langgraph/threads/{thread_id}/state": { values: { files: { "a.txt": "mine" } } },
  "POST /langgraph/threads/{thread_id}/state/checkpoint": {
    checkpoint: { checkpoint_id: "{checkpoint_id}" },
  },
  "POST /langgraph/threads/{thread_id}/history": {},
  "POST /langgraph/threads/{thread_id}/runs": LANGGRAPH_RUN,
  "POST /langgraph/threads/{thread_id}/runs/stream": LANGGRAPH_RUN,
  "POST /langgraph/threads/{thread_id}/runs/wait": LANGGRAPH_RUN,
  "POST /langgraph/runs": LANGGRAPH_RUN,
  "POST /langgraph/runs/stream": LANGGRAPH_RUN,
  "POST /langgraph/runs/wait": LANGGRAPH_RUN,
  "POST /langgraph/runs/batch": [LANGGRAPH_RUN],
  "POST /langgraph/threads/{thread_id}/commands": { id: 1, method: "state.get", params: {} },
  "POST /langgraph/threads/{thread_id}/stream/events": { channels: ["values", "messages", "lifecycle"] },
  "POST /langgraph/runs/crons": LANGGRAPH_CRON,
  "POST /langgraph/threads/{thread_id}/runs/crons": LANGGRAPH_CRON,
  "PATCH /langgraph/runs/crons/{cron_id}": { enabled: false },
  "POST /langgraph/runs/crons/search": {},
  "POST /langgraph/runs/crons/count": {},
  "POST /langgraph/runs/cancel": { thread_id: "{thread_id}", run_ids: ["{run_ids}"] },
  "POST /a2a/{agent}": { jsonrpc: "2.0", id: 1, method: "ListTasks" },
  "POST /mcp": {
    ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
    params: { name: "get_run", arguments: { thread_id: "{thread_id}" } },
  },
  "POST /ai-sdk/{agent}/chat": {
    id: "{id}",
    messages: [{ role: "user", parts: [{ type: "text", text: "hello" }] }],
  },
};

export interface Input {
  readonly place: "path" | "query" | "header" | "body";
  readonly name: string;
  readonly kind: Kind;
}

/** The inputs of an operation that may name a user's things. Throws for an input that is not listed here. */
export function inputsOf({ name: route, parameters, body, isStream }: Operation): Input[] {
  const all = [
    ...parameters.map(({ in: place, name }) => ({ place, name })),
    ...[...(body ? fieldsOf(body) : [])].map((name) => ({ place: "body" as const, name })),
    ...(isStream ? [{ place: "header" as const, name: "last-event-id" }] : []),
  ];
  return all.flatMap(({ place, name }) => {
    const kind = INPUTS[`${route} ${name}`] ?? INPUTS[name];
    if (kind) return kind === "nothing" ? [] : [{ place, name, kind }];
    throw new Error(`Say in INPUTS, in test/server/http/inputs.ts, what \`${name}\` of \`${route}\` names.`);
  });
}

/** Which of the inputs name what is not one's own: those of the path in every mixture, with each of the others. */
export function mixturesOf(inputs: readonly Input[]): Set<Input>[] {
  const isOfPath = ({ place }: Input) => place === "path";
  let paths: Input[][] = [[]];
  for (const input of inputs.filter(isOfPath)) paths = [...paths, ...paths.map((path) => [...path, input])];
  const others = inputs.filter((input) => !isOfPath(input));
  const mixtures = [[], ...others.map((input) => [input])].flatMap((other) =>
    paths.map((path) => new Set([...path, ...other])),
  );
  return mixtures.filter(({ size }) => size > 0 || inputs.every((input) => !isOfPath(input)));
}
