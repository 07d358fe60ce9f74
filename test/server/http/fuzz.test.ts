// Thousands of requests for the routes of openapi.yaml: fitting, nearly fitting, hostile. Every answer is one of the
// contract, and nothing stays behind.

import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { ErrorCode } from "../../../src/agent/core/errors.ts";
import { isWirePath, WireName } from "../../../src/server/config/wire-names.ts";
import { collectGarbage } from "../../support/garbage.ts";
import { operations } from "../../support/openapi.ts";
import { isNightly, seedOr } from "../../support/seed.ts";
import { startServer } from "../../support/server.ts";
import { type RawRequest, requestsFor } from "./arbitrary.ts";
import { type RawAnswer, sendRaw } from "./raw.ts";
import { client, headersOf, makeThings, script, type Things } from "./things.ts";

/** Of the requests for each route: those of 5 are the same in every run, so that each route succeeds; `TEST_SEED` adds its own. */
const SEEDS = new Set([5, seedOr(5)]);
const RUNS = 80;
/** Enough for a route that has succeeded. At night it gets all of them. */
const RUNS_BY_DAY = 20;
/** Where each starts processes. */
const FEW = 8;
const AT_ONCE = 8;

/** What a request may be refused with. None of them is the server's fault. */
const CODES: ReadonlySet<unknown> = new Set([
  ...(["invalid_request", "unauthorized", "forbidden", "not_found", "payload_too_large"] as const),
  ...(["unsupported_media_type", "range_not_satisfiable", "already_exists", "thread_busy"] as const),
  ...(["precondition_failed"] as const),
  ...(["method_not_allowed"] as const),
  ...([
    "queue_full",
    "limit_exceeded",
    "run_not_active",
    "events_expired",
    "backend_refused",
    "interrupt_closed",
  ] as const),
] satisfies ErrorCode[]);

const TOOL = {
  ...{ name: "look_up", description: "Looks it up.", callback_url: "https://tools.example.com/look-up" },
  ...{ parameters: { type: "object", properties: { word: { type: "string" } } }, headers: { "x-a": "b" } },
};

const TRIGGER = { agent: "assistant", verify: { scheme: "github" }, input: "{{body}}" };

const LANGGRAPH_RUN = {
  assistant_id: "assistant",
  if_not_exists: "create",
  // The run of a running thread never ends.
  multitask_strategy: "interrupt",
  input: { messages: [{ type: "human", content: "hello" }] },
};

const LANGGRAPH_CRON = { ...LANGGRAPH_RUN, multitask_strategy: "enqueue", schedule: "0 0 29 2 *" };

/** Bodies of which a schema alone does not tell that they are good. */
const WEBHOOK = { url: "https://hooks.example.com/", on: ["schedule.paused"] };

const CONNECTION = { type: "static_bearer", mcp_server_url: "https://mcp.example.com/", token: "token" };

const BODIES: Readonly<Record<string, readonly object[]>> = {
  "POST /tools": [TOOL],
  "PUT /me/connections/{connection_id}": [CONNECTION],
  "PUT /admin/connections/{connection_id}": [CONNECTION],
  "POST /webhooks": [{ ...WEBHOOK, id: "mine" }],
  "PUT /webhooks/{webhook_id}": [WEBHOOK, { ...WEBHOOK, agents: ["assistant"], ordered: true, paused: true }],
  "POST /admin/webhooks": [WEBHOOK],
  "PUT /admin/webhooks/{webhook_id}": [WEBHOOK],
  "PATCH /tools/{name}": [{ description: "Looks it up now." }],
  "POST /threads/{thread_id}/runs": [
    { input: "hello" },
    { messages: [{ role: "user", content: [{ type: "text", text: "hello" }] }], metadata: { a: 1 } },
    { input: "hello", tools: [{ name: "ask", description: "Asks.", parameters: { type: "object" } }] },
    { calls: [{ name: "write_todos", args: { todos: [] } }] },
  ],
  "POST /runs": [{ input: "hello" }, { input: "hello", keep_thread: false }],
  "POST /runs/batch": [{ runs: [{ input: "hello", keep_thread: false }, { input: "hello" }] }],
  "POST /threads/{thread_id}/runs/{run_id}/resume": [{ answers: [{ id: "x", decision: "approve" }] }],
  "POST /threads/{thread_id}/permissions": [{ allow: "execute", command_prefix: ["git"] }],
  "PUT /schedules/{schedule_id}": [
    { cron: "*/5 * * * *", input: "hello" },
    { at: "2100-01-01T00:00:00Z", input: "hello", paused: true },
  ],
  "POST /schedules/preview": [{ cron: "0 9 * * MON-FRI" }, { at: "2100-01-01T00:00:00Z" }],
  "PATCH /agents/{name}/overrides": [{ hooks: {} }],
  "POST /threads/{thread_id}/fork": [{}],
  "POST /agents/{name}/permissions": [{ decision: "deny", matcher: { tool: "execute" } }],
  "POST /tool-results/{token}": [{ result: "found" }, { error: "gone" }],
  "POST /triggers": [TRIGGER],
  "PUT /triggers/{trigger_id}": [TRIGGER, { ...TRIGGER, filter: { "body.a": [1] }, thread: "{{body.a}}" }],
  "POST /triggers/{trigger_id}/rotate": [{}, { keep_old_for: 60 }],
  "POST /triggers/{trigger_id}/test": [{ body: { a: 1 } }, { headers: { "x-a": "b" }, body: null }],
  "POST /v1/chat/completions": [
    { model: "assistant", messages: [{ role: "user", content: "hello" }] },
    { model: "assistant", messages: [{ role: "user", content: "hello" }], stream: true },
  ],
  "POST /ag-ui/agent/{agent}/run": [
    { threadId: "t", runId: "r", messages: [{ id: "m1", role: "user", content: "hello" }] },
    { threadId: "t", runId: "r", messages: [{ id: "m2", role: "user", content: "hello" }], context: [] },
  ],
  "POST /ag-ui/agent/{agent}/connect": [{ threadId: "t", runId: "r", messages: [] }],
  "POST /v1/responses": [
    { model: "assistant", input: "hello" },
    { model: "assistant", input: [{ role: "user", content: "hello" }], stream: true },
    { model: "assistant", input: "hello", background: true },
  ],
  "POST /v1/conversations": [{}, { items: [{ role: "user", content: "hello" }], metadata: { a: "b" } }],
  "POST /v1/conversations/{conversation_id}/items": [
    { items: [{ role: "user", content: "hello" }] },
    { items: [{ type: "function_call", call_id: "c", name: "where", arguments: "{}" }] },
  ],
  "POST /langgraph/threads/{thread_id}/runs": [LANGGRAPH_RUN],
  "POST /langgraph/threads/{thread_id}/runs/stream": [LANGGRAPH_RUN],
  "POST /langgraph/threads/{thread_id}/runs/wait": [LANGGRAPH_RUN],
  "POST /langgraph/threads/{thread_id}/commands": [
    { id: 1, method: "run.start", params: LANGGRAPH_RUN },
    { id: 2, method: "state.get", params: {} },
  ],
  "POST /langgraph/runs": [LANGGRAPH_RUN],
  "POST /langgraph/runs/batch": [[LANGGRAPH_RUN]],
  "POST /langgraph/runs/crons": [LANGGRAPH_CRON],
  "POST /langgraph/threads/{thread_id}/runs/crons": [LANGGRAPH_CRON],
  "PATCH /langgraph/runs/crons/{cron_id}": [{ enabled: false }],
  "POST /langgraph/runs/crons/search": [{}],
  "POST /langgraph/runs/crons/count": [{}],
  "POST /langgraph/runs/stream": [LANGGRAPH_RUN],
  "POST /langgraph/runs/wait": [LANGGRAPH_RUN],
  "POST /langgraph/threads": [{}, { metadata: { graph_id: "assistant" } }],
  "POST /langgraph/threads/search": [{ metadata: { graph_id: "assistant" }, limit: 5 }],
  "POST /langgraph/threads/{thread_id}/state": [
    { values: { files: {} } },
    { values: { messages: [{ type: "human", content: "hello" }] } },
  ],
  "POST /langgraph/threads/{thread_id}/state/checkpoint": [{ checkpoint: {} }],
  "POST /a2a/{agent}": [
    { jsonrpc: "2.0", id: 1, method: "ListTasks" },
    { jsonrpc: "2.0", id: "a", method: "GetTask", params: { id: "thread.run" } },
    {
      ...{ jsonrpc: "2.0", id: 2, method: "SendMessage" },
      params: { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] } },
    },
  ],
  "POST /mcp": [
    { jsonrpc: "2.0", id: 1, method: "ping" },
    { jsonrpc: "2.0", id: "a", method: "tools/list" },
    { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_agents" } },
    {
      ...{ jsonrpc: "2.0", id: 3, method: "tools/call" },
      params: { name: "run_agent", arguments: { agent: "assistant", message: "hello" } },
    },
  ],
  "POST /ai-sdk/{agent}/chat": [
    { id: "chat", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] }] },
    { id: "chat", message: { role: "user", parts: [{ type: "text", text: "hello" }] } },
  ],
};

/** Routes that succeed only for a run or a call that waits, a rule, branch, share, schedule or answer that exists, or a thread of one run or without questions. */
const NEED_ANOTHER: ReadonlySet<string> = new Set([
  "POST /threads/{thread_id}/branches/{branch_id}/restore",
  "DELETE /threads/{thread_id}/shares/{share_id}",
  "PUT /threads/{thread_id}/messages/{message_id}/feedback",
  "DELETE /threads/{thread_id}/messages/{message_id}/feedback",
  "GET /shared/{user}/{thread_id}/{share_id}",
  "GET /shared/{user}/{thread_id}/{share_id}/messages",
  "POST /threads/{thread_id}/runs/{run_id}/resume",
  "DELETE /threads/{thread_id}/permissions/{id}",
  "DELETE /agents/{name}/permissions/{id}",
  "POST /tool-results/{token}",
  "POST /hooks/{address}",
  "GET /schedules/{schedule_id}",
  "POST /schedules/{schedule_id}/run",
  "DELETE /v1/responses/{response_id}",
  "POST /webhooks/{webhook_id}/deliveries/{delivery_id}/send",
  "POST /admin/webhooks/{webhook_id}/deliveries/{delivery_id}/send",
  "DELETE /v1/conversations/{conversation_id}/items/{item_id}",
  // Its server has no MCP servers.
  "POST /me/connections/{connection_id}/authorize",
  "POST /admin/connections/{connection_id}/authorize",
  // Its server has no API keys.
  "POST /admin/keys",
  "POST /admin/keys/{key_id}/revoke",
  // The fuzzer is an admin, no operator.
  "DELETE /admin/engines/{engine}",
  "POST /admin/backup",
  "POST /langgraph/runs/cancel",
  "PATCH /langgraph/runs/crons/{cron_id}",
  "DELETE /langgraph/runs/crons/{cron_id}",
  "GET /mcp",
]);

const put = (body: object) => ({
  method: "PUT",
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" },
});

const FUZZER = { tenant: "acme", user: "fuzzer" };

const SUBJECTS = [
  "/ag-ui",
  "/ai-sdk",
  "/v1",
  "/langgraph",
  "/mcp",
  "/a2a",
  "/runs",
  "/admin",
  "/permissions",
  "/threads",
  "/backend",
  "/agents",
  "/webhooks",
  "/connections",
  "/",
];
const groups = Map.groupBy(operations, ({ path }) => SUBJECTS.find((each) => path.includes(each)));

test.each([...groups])(
  "every request to %s gets a response that matches the contract, and leaves nothing behind",
  async (_, routes) => {
    const log: string[] = [];
    const { url, app } = await startServer({
      config: {
        auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
        // Without any the server warns at its start.
        quotas: { tenant: { threads: 1_000_000 } },
        traces: { requests: true },
        vault: { key: randomBytes(32).toString("base64"), connections: 1_000_000 },
        limits: { webhooks: 1_000_000, schedules: 1_000_000, triggers: 1_000_000 },
        wires: WireName.options,
      },
      script,
      logger: pino({ level: "warn" }, { write: (line: string) => log.push(line) }),
    });
    const port = Number(new URL(url).port);
    const me = client(url, FUZZER);
    const headers = Object.entries(headersOf(FUZZER))
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join("");
    const before = { prototype: Object.getOwnPropertyNames(Object.prototype), heap: heapUsed() };
    const { server } = app.server;
    const connections = promisify(server.getConnections.bind(server));
    const welcomed = new Set<string>();
    const faults: string[] = [];

    const isReading = ({ method }: { method: string }) => method === "GET";
    // A route that only reads leaves its things to the next one.
    const inOrder = [...routes.filter(isReading), ...routes.filter((each) => !isReading(each))];
    let made: Things[] = [];
    for (const operation of inOrder) {
      if (made.length === 0 || !isReading(operation)) {
        made = await Promise.all([makeThings(me, "ended"), makeThings(me, "running")]);
        await me.ask("/admin/webhooks/mine", put(WEBHOOK));
        await me.ask("/admin/connections/mine", put(CONNECTION));
      }
      // Who joins a run gets its answer once it has ended.
      const all = operation.path.endsWith("/join") ? made.slice(0, 1) : made;
      const known = {
        webhook_id: [...all.map(({ webhook }) => webhook), "mine"],
        connection_id: [...all.map(({ connection }) => connection), "mine"],
        thread_id: all.map(({ thread }) => thread),
        run_id: all.map(({ run }) => run),
        path: all.map(({ file }) => file),
        after: all.flatMap(({ event, message }) => [event, message]),
        cursor: all.flatMap(({ threadPage, runPage }) => [threadPage, runPage]),
        agent: ["assistant"],
        model: ["assistant"],
        assistant_id: ["assistant"],
        response_id: all.map(({ response }) => response),
        trigger_id: all.map(({ trigger }) => trigger),
        conversation_id: all.map(({ thread }) => thread),
        checkpoint_id: ["00000000-empty"],
        n: ["1"],
        ...{ tenant: [FUZZER.tenant], user: [FUZZER.user] },
        ...(isWirePath(operation.path) ? { id: all.map(({ thread }) => thread) } : {}),
        name: ["assistant", TOOL.name],
        body: (BODIES[operation.name] ?? []).map((body) => JSON.stringify(body)),
      };
      const startsProcesses = operation.path.startsWith("/backend/") && operation.method === "POST";
      const numRuns = startsProcesses ? FEW : RUNS;
      const requests = [...SEEDS].flatMap((seed) =>
        fc.sample(requestsFor(operation, known, headers), { seed, numRuns }),
      );
      let sent = 0;
      const isEnough = () =>
        sent >= RUNS_BY_DAY * SEEDS.size &&
        (welcomed.has(operation.name) || NEED_ANOTHER.has(operation.name)) &&
        !isNightly;
      const send = async (request: RawRequest) => {
        sent++;
        const answer = await sendRaw(port, request.bytes, request.isBroken);
        if (answer.status > 0 && answer.status < 400) welcomed.add(operation.name);
        const fault = faultOf(answer, operation.path, request.isBroken);
        if (fault)
          faults.push(
            `${fault} (seeds ${[...SEEDS]}), for ${JSON.stringify(request.bytes.toString("latin1").slice(0, 1_000))}`,
          );
      };
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let next = requests.pop(); next && !isEnough(); next = requests.pop()) await send(next);
        }),
      );
    }

    expect(faults).toEqual([]);
    const names = routes.map(({ name }) => name);
    expect(names.filter((name) => !welcomed.has(name))).toEqual(
      names.filter((name) => NEED_ANOTHER.has(name)),
    );
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before.prototype);
    expect(log).toEqual([]);

    await clear(me);
    server.closeIdleConnections();
    await expect.poll(() => connections()).toBe(0);
    expect(heapUsed() - before.heap).toBeLessThan(64 << 20);
  },
);

/** What in an answer is not as the contract says. */
function faultOf({ status, headers, body }: RawAnswer, path: string, isBroken: boolean): string | undefined {
  if (status === 0) return isBroken ? undefined : "no answer";
  if (status >= 500) return `status ${status}`;
  if (headers.has("x-evil")) return "a header out of the request";
  if (status < 400) return undefined;
  if (headers.get("content-length") !== String(Buffer.byteLength(body, "latin1")))
    return `more than one answer: ${body}`;
  if (body.length > 32_768) return `a refusal of ${body.length} characters`;
  const type = headers.get("content-type") ?? "";
  // What a server refuses before it knows the route is a problem everywhere.
  if (path.startsWith("/ai-sdk") && type === "text/plain; charset=utf-8") return undefined;
  if (path.startsWith("/ag-ui") && type.startsWith("application/json")) {
    const { error, message } = JSON.parse(body) as { error?: unknown; message?: unknown };
    return CODES.has(error) && typeof message === "string" ? undefined : `no error: ${body}`;
  }
  if (path.startsWith("/v1") && type.startsWith("application/json")) {
    const { error } = JSON.parse(body) as { error?: { message?: unknown; type?: unknown } };
    return typeof error?.message === "string" && typeof error.type === "string"
      ? undefined
      : `no error: ${body}`;
  }
  if (path.startsWith("/langgraph") && type.startsWith("application/json")) {
    const { code, message } = JSON.parse(body) as { code?: unknown; message?: unknown };
    return CODES.has(code) && typeof message === "string" ? undefined : `no error: ${body}`;
  }
  if (/^\/(?:mcp|a2a)/.test(path) && type.startsWith("application/json")) {
    const { error } = JSON.parse(body) as { error?: { message?: unknown; code?: unknown } };
    return typeof error?.message === "string" && typeof error.code === "number"
      ? undefined
      : `no error: ${body}`;
  }
  if (!type.startsWith("application/problem+json")) return `${status} is no problem`;
  const problem = JSON.parse(body) as { status: unknown; code: unknown };
  return problem.status !== status || !CODES.has(problem.code)
    ? `${status} with code ${problem.code}`
    : undefined;
}

/** Deletes what the requests have made. */
async function clear({ read, ask }: ReturnType<typeof client>): Promise<void> {
  for (;;) {
    const { items } = await read("/threads?limit=100");
    if (items.length === 0) return;
    for (const { id } of items) {
      const runs = (await read(`/threads/${id}/runs?limit=100`)).items;
      for (const run of runs.filter(({ status }) => status === "running" || status === "pending"))
        await ask(`/threads/${id}/runs/${run.id}/cancel`, { method: "POST" });
      await ask(`/threads/${id}`, { method: "DELETE" });
    }
  }
}

function heapUsed(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
