// Thousands of requests for the routes of openapi.yaml: fitting, nearly fitting, hostile. Every answer is one of the
// contract, and nothing stays behind.

import { promisify } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { ErrorCode } from "../../src/core/errors.ts";
import { isWirePath } from "../../src/http/wires/names.ts";
import { operations } from "../support/openapi.ts";
import { startServer } from "../support/server.ts";
import { type RawRequest, requestsFor } from "./arbitrary.ts";
import { type RawAnswer, sendRaw } from "./raw.ts";
import { client, headersOf, makeThings, script } from "./things.ts";

/** Requests for each route. The same in every run, so that each route succeeds at least once. */
const SAME = { seed: 5, numRuns: 120 };
/** Where each starts processes. */
const FEW = 8;
const AT_ONCE = 8;

/** What a request may be refused with. None of them is the server's fault. */
const CODES: ReadonlySet<unknown> = new Set([
  ...(["invalid_request", "unauthorized", "forbidden", "not_found", "payload_too_large"] as const),
  ...(["unsupported_media_type", "range_not_satisfiable", "already_exists", "thread_busy"] as const),
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

/** Bodies of which a schema alone does not tell that they are good. */
const BODIES: Readonly<Record<string, readonly object[]>> = {
  "POST /tools": [TOOL],
  "POST /threads/{thread_id}/runs": [
    { input: "hello" },
    { messages: [{ role: "user", content: [{ type: "text", text: "hello" }] }], metadata: { a: 1 } },
    { input: "hello", tools: [{ name: "ask", description: "Asks.", parameters: { type: "object" } }] },
  ],
  "POST /threads/{thread_id}/runs/{run_id}/resume": [{ answers: [{ id: "x", decision: "approve" }] }],
  "POST /threads/{thread_id}/permissions": [{ allow: "execute", command_prefix: ["git"] }],
  "PATCH /agents/{name}/overrides": [{ hooks: {} }],
  "POST /threads/{thread_id}/fork": [{}],
  "POST /agents/{name}/permissions": [{ decision: "deny", matcher: { tool: "execute" } }],
  "POST /tool-results/{token}": [{ result: "found" }, { error: "gone" }],
  "POST /v1/chat/completions": [
    { model: "assistant", messages: [{ role: "user", content: "hello" }] },
    { model: "assistant", messages: [{ role: "user", content: "hello" }], stream: true },
  ],
  "POST /ai-sdk/{agent}/chat": [
    { id: "chat", messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "hello" }] }] },
    { id: "chat", message: { role: "user", parts: [{ type: "text", text: "hello" }] } },
  ],
};

/** Routes that succeed only for a run or a call that waits, or for a rule that exists. */
const NEED_ANOTHER: ReadonlySet<string> = new Set([
  "POST /threads/{thread_id}/runs/{run_id}/resume",
  "DELETE /threads/{thread_id}/permissions/{id}",
  "DELETE /agents/{name}/permissions/{id}",
  "POST /tool-results/{token}",
]);

const FUZZER = { tenant: "acme", user: "fuzzer" };

const SUBJECTS = ["/ai-sdk", "/v1", "/runs", "/permissions", "/threads", "/backend", "/agents", "/"];
const groups = Map.groupBy(operations, ({ path }) => SUBJECTS.find((each) => path.includes(each)));

test.each([...groups])(
  "every request to %s gets an answer of the contract, and nothing stays behind",
  async (_, routes) => {
    const log: string[] = [];
    const { url, app } = await startServer({
      config: {
        auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
        // Without any the server warns at its start.
        quotas: { tenant: { threads: 1_000_000 } },
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

    for (const operation of routes) {
      const all = [await makeThings(me, "ended"), await makeThings(me, "running")];
      const known = {
        thread_id: all.map(({ thread }) => thread),
        run_id: all.map(({ run }) => run),
        path: all.map(({ file }) => file),
        after: all.flatMap(({ event, message }) => [event, message]),
        cursor: all.flatMap(({ threadPage, runPage }) => [threadPage, runPage]),
        agent: ["assistant"],
        model: ["assistant"],
        ...(isWirePath(operation.path) ? { id: all.map(({ thread }) => thread) } : {}),
        name: ["assistant", TOOL.name],
        body: (BODIES[operation.name] ?? []).map((body) => JSON.stringify(body)),
      };
      const startsProcesses = operation.path.startsWith("/backend/") && operation.method === "POST";
      const requests = [SAME].flatMap(({ seed, numRuns }) =>
        fc.sample(requestsFor(operation, known, headers), { seed, numRuns: startsProcesses ? FEW : numRuns }),
      );
      const send = async (request: RawRequest) => {
        const answer = await sendRaw(port, request.bytes, request.isBroken);
        if (answer.status > 0 && answer.status < 400) welcomed.add(operation.name);
        const fault = faultOf(answer, operation.path, request.isBroken);
        if (fault)
          faults.push(
            `${fault} (seed ${SAME.seed}), for ${JSON.stringify(request.bytes.toString("latin1").slice(0, 1_000))}`,
          );
      };
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          for (let next = requests.pop(); next; next = requests.pop()) await send(next);
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
  if (path.startsWith("/v1") && type.startsWith("application/json")) {
    const { error } = JSON.parse(body) as { error?: { message?: unknown; type?: unknown } };
    return typeof error?.message === "string" && typeof error.type === "string"
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
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  return process.memoryUsage().heapUsed;
}
