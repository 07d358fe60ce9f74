import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { gate } from "../support/gate.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { requestsTo } from "../support/native.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { cast, completing, delegating } from "../support/team.ts";

const work = defineTool({
  ...{ name: "work", description: "", parameters: z.object({}) },
  execute: () => "worked",
});
const working: Turn = { call: [{ tool: "work" }], usage: { input_tokens: 6000, output_tokens: 4000 } };
/** Judged, summarised, delegated and in the background. */
const FAMILY = `
defaults: { model: "scripted:test", tools: [gate], permissions: { mode: bypass } }
agents:
  lead:
    system_prompt: I am lead
    subagents: [coder, tester]
    context_window: 4000
    hooks: { guardrails: { input: { judge: { policy: Be kind. } } } }
  coder: { system_prompt: I am coder }
  tester: { system_prompt: I am tester }
`;
const AGENTS = "agents: { helper: { model: scripted:test, tools: ['*'] } }";

async function serve(quotas: object, more: ServerOptions = {}) {
  const server = await startServer({
    agents: AGENTS,
    tools: [work],
    config: { ...BEHIND_GATEWAY, quotas },
    ...more,
  });
  const send = requestsTo(server.url, { accept: "application/json" });
  const ask = async (path: string, { method = "GET", user = "ada", body }: Ask = {}) => {
    const { status, headers, body: json } = await send(method, path, body, asUser(user));
    return { status, retry: headers.get("retry-after"), json };
  };
  const run = (thread: string, more: object = {}, user = "ada") =>
    ask(`/threads/${thread}/runs`, { method: "POST", user, body: { input: "go", ...more } });
  return { ask, run, url: server.url };
}
interface Ask {
  method?: string;
  user?: string;
  body?: object;
}

test("a budget that is used up ends the run, keeps its work, and refuses the next one", async () => {
  const { ask, run } = await serve(
    { user: { tokens_per_day: 25_000 } },
    {
      script: () => working,
    },
  );
  const first = await run("t1");
  expect(first.json).toMatchObject({ status: "error", stop_reason: "quota" });
  expect(first.json.messages.filter(({ role }: { role: string }) => role === "tool")).toHaveLength(3);
  const second = await run("t1");
  expect(second.status).toBe(429);
  expect(Number(second.retry)).toBeGreaterThan(0);
  expect(second.json.details).toMatchObject({ limit: "tokens_per_day", of: "user", most: 25_000 });
  expect((await run("t2", {}, "bob")).status).toBe(200);
  const usage = await ask("/usage");
  expect(usage.json).toMatchObject({
    items: [{ agent: "helper", calls: 3, input_tokens: 18_000, output_tokens: 12_000 }],
    totals: { calls: 3 },
    limits: [{ limit: "tokens_per_day", of: "user", most: 25_000, used: 30_000, left: 0 }],
  });
});

test("consecutive runs never count as too many at once", async () => {
  const { run } = await serve({ user: { concurrent_runs: 1 } }, { script: () => ({ say: "ok" }) });
  for (let n = 0; n < 10; n++) expect((await run(`t${n}`)).json).toMatchObject({ status: "success" });
});

test("a run above the limit is refused, and creates no thread", async () => {
  const { ask, run } = await serve(
    { tenant: { concurrent_runs: 1 } },
    {
      script: [{ say: "a b c d", delay_ms: 60_000 }],
    },
  );
  const first = await run("t1", { background: true });
  expect(first.status).toBe(202);
  const second = await run("t2", { background: true }, "bob");
  expect(second.status).toBe(429);
  expect(second.json.details).toMatchObject({ limit: "concurrent_runs", of: "tenant", most: 1 });
  expect((await ask("/threads/t2", { user: "bob" })).status).toBe(404);
  const body = { mode: "cancel" };
  await ask(`/threads/t1/runs/${first.json.id}/cancel`, { method: "POST", body });
  expect((await run("t2", { background: true }, "bob")).status).toBe(202);
});

test("a waiting run counts until it is cancelled", async () => {
  const { ask, run } = await serve(
    { user: { concurrent_runs: 2 } },
    {
      script: [{ say: "a b c d", delay_ms: 60_000 }],
    },
  );
  await run("t1", { background: true });
  const waiting = await run("t1", { background: true, on_busy: "enqueue" });
  expect(waiting.status).toBe(202);
  expect((await run("t2", { background: true })).status).toBe(429);
  await ask(`/threads/t1/runs/${waiting.json.id}/cancel`, { method: "POST", body: {} });
  expect((await run("t2", { background: true })).status).toBe(202);
});

test("the number of threads is limited, and deleting one makes room", async () => {
  const { ask, run } = await serve({ user: { threads: 2 } }, { script: () => ({ say: "ok" }) });
  const create = (id: string) => ask("/threads", { method: "POST", body: { id } });
  expect((await create("t1")).status).toBe(201);
  expect((await run("t2")).status).toBe(200);
  expect((await create("t1")).status).toBe(409);
  const fork = () => ask("/threads/t1/fork", { method: "POST", body: {} });
  for (const refused of [await create("t3"), await run("t3"), await fork()]) {
    expect(refused.status).toBe(429);
    expect(refused.json.details).toMatchObject({ limit: "threads", of: "user" });
  }
  expect((await run("t1")).status).toBe(200);
  expect((await ask("/threads/t1", { method: "DELETE" })).status).toBe(204);
  expect((await create("t3")).status).toBe(201);
});

test("every model call of a run's family counts for the user who started it, even after the run has ended", async () => {
  let asked = 0;
  const purposes = new Set<string>();
  const { tool, open, entered } = gate();
  const played = cast({
    lead: [
      delegating({ agent: "coder", task: "Code it" }),
      { call: [{ tool: "start_task", args: { agent: "tester", task: "Test it", context: "" } }] },
      { say: "Started." },
    ],
    coder: [completing(`Coded. ${"word ".repeat(3000)}`)],
    tester: [{ call: [{ tool: "gate" }] }, completing("Tested.")],
  });
  const { ask, run } = await serve(
    { user: { tokens_per_day: 1_000_000 } },
    {
      agents: FAMILY,
      tools: [tool],
      script: (request, turn) => {
        asked++;
        const usage = { input_tokens: 3600, output_tokens: 4000 };
        const [first] = request.system;
        purposes.add(first?.id ?? "");
        if (first?.id === "guardrail") return { say: '{"allowed": true}', usage };
        if (first?.id === "title") return { say: "Coding", usage };
        if (first?.id === "summarization") return { say: "It was coded.", usage };
        return { ...played(request, turn), usage };
      },
    },
  );
  expect((await run("t1")).json).toMatchObject({ status: "success" });
  const ended = asked;
  await entered;
  const threads = (await ask("/threads?parent=t1")).json.items as { id: string; title: string }[];
  open();
  for (const { id } of threads)
    await expect.poll(async () => (await ask(`/threads/${id}`)).json.status).toBe("idle");
  expect((await ask("/threads/t1/title", { method: "POST", body: {} })).status).toBe(200);
  expect(asked).toBeGreaterThan(ended + 1);

  for (const purpose of ["guardrail", "title", "summarization"]) expect(purposes).toContain(purpose);
  const { items, totals, limits } = (await ask("/usage")).json;
  expect(items.map(({ agent }: { agent: string }) => agent).sort()).toEqual(["coder", "lead", "tester"]);
  expect(totals).toMatchObject({ calls: asked, input_tokens: 3600 * asked, output_tokens: 4000 * asked });
  expect(limits).toMatchObject([{ limit: "tokens_per_day", used: 7600 * asked }]);
  expect((await ask("/usage", { user: "bob" })).json.totals.calls).toBe(0);
});

/** Refused before or after something was taken for it, or shown and left. */
const ROUTES: readonly (readonly [
  what: string,
  path: string,
  body?: object,
  headers?: Record<string, string>,
])[] = [
  ["a run of no agent", "/threads/new/runs", { input: "go", agent: "none" }],
  ["a run with a schema that is none", "/threads/new/runs", { input: "go", output_schema: { type: "none" } }],
  ["a run with a tool that is none", "/threads/new/runs", { input: "go", tools: [{ name: "work" }] }],
  ["a run on a busy thread", "/threads/busy/runs", { input: "go" }],
  ["a run that replaces no message", "/threads/idle/runs", { input: "go", replaces: "msg_none" }],
  ["a run that is known", "/threads/busy/runs", { input: "go" }, { "idempotency-key": "k" }],
  ["a run that has gone", "/threads/busy/runs", { input: "go" }, { "last-event-id": "run_none:1:1" }],
  ["an answer to no question", "/threads/busy/runs/run_none/resume", { answers: [] }],
  ["a thread that is there", "/threads", { id: "idle" }],
  ["a copy of no thread", "/threads/none/fork", { id: "copy" }],
  ["a copy that is there", "/threads/idle/fork", { id: "idle" }],
  ["events of no run", "/threads/idle/runs/run_none/events"],
  ["events of no thread", "/threads/none/events"],
  ["events of a user", "/events"],
];

test.each(["text/event-stream", "application/json"])(
  "a refused or abandoned request releases everything that its route had taken: %s",
  async (accept) => {
    const { ask, run, url } = await serve(
      { user: { concurrent_runs: 3, threads: 4, streams: 2 } },
      { script: [{ say: "ok" }, { say: "a b c d", delay_ms: 60_000 }] },
    );
    await run("idle");
    const identity = asUser("ada");
    const send = async (path: string, body?: object, headers: Record<string, string> = {}) => {
      const leave = new AbortController();
      const reply = await fetch(url + path, {
        method: body ? "POST" : "GET",
        headers: { ...identity, accept, ...(body ? { "content-type": "application/json" } : {}), ...headers },
        ...(body ? { body: JSON.stringify(body) } : {}),
        signal: leave.signal,
      });
      const isStream = reply.headers.get("content-type")?.startsWith("text/event-stream");
      if (!isStream) await reply.text();
      leave.abort();
      return isStream || reply.status >= 400;
    };
    await send("/threads/busy/runs", { input: "go", background: true }, { "idempotency-key": "k" });
    const used = async () => {
      const { limits } = (await ask("/usage")).json as { limits: { limit: string; used: number }[] };
      return Object.fromEntries(limits.map((each) => [each.limit, each.used]));
    };
    await expect.poll(used).toEqual({ concurrent_runs: 1, threads: 2, streams: 0 });
    for (const [what, path, body, headers] of [...ROUTES, ...ROUTES]) {
      // In JSON it waits for the end of the run.
      if (what === "a run that is known" && accept === "application/json") continue;
      expect(await send(path, body, headers), what).toBe(true);
      await expect.poll(used, { message: what }).toEqual({ concurrent_runs: 1, threads: 2, streams: 0 });
    }
  },
);
