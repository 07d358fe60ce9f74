// What Prometheus reads from a running server, checked with its own tool.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineHook } from "../../src/agent/core/hook.ts";
import { createClient } from "../../src/client/client.ts";
import { startFakeProvider } from "../support/fake-provider/server.ts";
import { asUser, BEHIND_GATEWAY } from "../support/gateway.ts";
import { needing } from "../support/needing.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { webhookInbox } from "../support/webhook-inbox.ts";

const promtool = needing(!spawnSync("promtool", ["--version"]).error, "promtool");
const TOKEN = "prometheus-reads-this";

async function read(url: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(`${url}/metrics`, { headers });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  return answer.text();
}

/** The value of a line, such as `skein_runs_ended_total{agent="a"}`. */
const sampleOf = (page: string, line: string) =>
  Number(
    page
      .split("\n")
      .find((each) => each.startsWith(`${line} `))
      ?.slice(line.length + 1) ?? Number.NaN,
  );

async function ran(options: ServerOptions, requests: readonly object[] = [{ input: "Hello" }]) {
  const server = await startServer(options);
  for (const request of requests) await (await post(`${server.url}/threads/t1/runs`, request)).ended();
  return { ...server, page: () => read(server.url) };
}

test("runs are counted by agent, status and reason, with their model, tokens and tools", async () => {
  const script = [
    { call: [{ tool: "write_todos", args: { todos: [] } }] },
    { say: "Done." },
    { fail: { code: "model_auth" } },
  ];
  const { page } = await ran({ script: script as never }, [{ input: "One" }, { input: "Two" }]);
  const one = (line: string, value: number) =>
    expect.poll(async () => sampleOf(await page(), line), { message: line }).toBe(value);
  await one('skein_runs_ended_total{agent="assistant",status="success",stop_reason="end_turn"}', 1);
  await one('skein_runs_ended_total{agent="assistant",status="error",stop_reason="model_auth"}', 1);
  await one('skein_run_seconds_count{agent="assistant"}', 2);
  await one("skein_run_wait_seconds_count", 2);
  await one('skein_run_first_token_seconds_count{agent="assistant"}', 1);
  await one('skein_model_calls_total{model="scripted:test",outcome="ok"}', 2);
  await one('skein_model_calls_total{model="scripted:test",outcome="model_auth"}', 1);
  await one('skein_model_call_seconds_count{model="scripted:test"}', 3);
  await one('skein_tool_calls_total{tool="write_todos",outcome="ok"}', 1);
  await one('skein_http_requests_total{route="/threads/:thread_id/runs",method="POST",status="200"}', 2);
  await one("skein_run_slots", 500);
  await one("skein_runs_active", 0);
  await one("skein_streams_open", 0);
  await one('skein_dependency_up{dependency="store"}', 1);
  const loaded = sampleOf(await page(), "skein_config_loaded_timestamp_seconds");
  expect(Math.abs(Date.now() / 1000 - loaded)).toBeLessThan(3600);
  expect(
    sampleOf(await page(), 'skein_model_tokens_total{model="scripted:test",kind="output"}'),
  ).toBeGreaterThan(0);
});

test("a request over a wire counts once, under the wire's route", async () => {
  const { url, page } = await ran({}, []);
  await fetch(`${url}/v1/models`);
  await fetch(`${url}/v1/models`);
  await fetch(`${url}/the-last`);
  const counted = async () =>
    (await page())
      .split("\n")
      .filter((line) => line.startsWith("skein_http_requests_total{") && !line.includes('route="/metrics"'));
  // Requests are counted after their answers, in the same order.
  await expect.poll(async () => (await counted()).join()).toContain('route="other"');
  expect((await counted()).sort()).toEqual([
    'skein_http_requests_total{route="/v1/models",method="GET",status="200"} 2',
    'skein_http_requests_total{route="other",method="GET",status="404"} 1',
  ]);
});

test("an abandoned model is counted with its code and the fallback that was called", async () => {
  const provider = await startFakeProvider();
  const agents = `
agents:
  assistant:
    model: { provider: openai, model: gpt-5-mini, base_url: "${provider.url}/v1", api_key: k, fallback: [{ provider: openai, model: gpt-5, base_url: "${provider.url}/v1", api_key: k }] }
    hooks: { retry: { attempts: 2, base_ms: 1 } }
`;
  provider.enqueue({ fail: "overloaded" }, { fail: "overloaded" }, { blocks: [{ text: "Here." }] } as never);
  const { page } = await ran({ agents, realModels: true });
  const shown = await page();
  expect(
    sampleOf(shown, 'skein_model_retries_total{model="openai:gpt-5-mini",code="model_overloaded"}'),
  ).toBe(1);
  expect(sampleOf(shown, 'skein_model_fallbacks_total{from="openai:gpt-5-mini",to="openai:gpt-5"}')).toBe(1);
  await provider.close();
});

test("a sandbox is counted in its last state, and when it fails", async () => {
  const agents = "agents: { assistant: { model: 'scripted:test', backend: { type: docker, image: none } } }";
  const config = { backends: { docker: { host: "unix:///no/engine.sock" } } };
  const script = [{ call: [{ tool: "execute", args: { command: "true" } }] }, { say: "Done." }];
  const { url, page } = await ran({ agents, config, script });
  const shown = await page();
  expect((await fetch(`${url}/ready`)).status).toBe(503);
  expect(sampleOf(shown, 'skein_sandboxes{type="docker",state="starting"}')).toBe(0);
  expect(sampleOf(shown, 'skein_sandboxes{type="docker",state="error"}')).toBe(1);
  expect(sampleOf(shown, 'skein_sandbox_failures_total{type="docker"}')).toBeGreaterThan(0);
});

test("a thread counts as waiting for an answer until it has one", async () => {
  const script = [{ call: [{ tool: "ask_user", args: { question: "Which?" } }] }, { say: "That one." }];
  const agents = "agents: { assistant: { model: 'scripted:test', tools: [ask_user] } }";
  const { url, page } = await ran({ script, agents, config: { store: "sqlite" } });
  await expect.poll(async () => sampleOf(await page(), "skein_threads_interrupted")).toBe(1);
  const { items } = (await (await fetch(`${url}/threads/t1/interrupts`)).json()) as {
    items: { id: string; run_id: string }[];
  };
  const answers = [{ id: items[0]?.id, decision: "respond", message: "This one." }];
  await (await post(`${url}/threads/t1/runs/${items[0]?.run_id}/resume`, { answers })).ended();
  await expect.poll(async () => sampleOf(await page(), "skein_threads_interrupted")).toBe(0);
});

test("questions, webhooks, the trail, refusals, resumed streams, costs, reloads and failed hooks are counted", async () => {
  const inbox = await webhookInbox();
  const afterAgent = () => Promise.reject(new Error("broken"));
  const shaky = defineHook({
    ...{ name: "shaky", options: z.strictObject({}), activeByDefault: () => true },
    create: () => ({ name: "shaky", afterAgent }),
  });
  const agents = "agents: { assistant: { model: 'scripted:test', tools: [ask_user] } }";
  const { url, app, dir, page } = await ran(
    {
      ...{ agents, hooks: [shaky], script: [{ call: [{ tool: "ask_user", args: { question: "Which?" } }] }] },
      config: {
        ...{ store: "sqlite", limits: { webhooks: 1 }, http_tools: { allow: inbox.host } },
        interrupts: { webhook: { url: inbox.url, secret: `whsec_${"A".repeat(32)}` } },
        quotas: { prices: { "scripted:*": { input: 1_000, output: 1_000 } } },
      },
    },
    [],
  );
  const client = createClient({ baseUrl: url });
  const webhook = { url: inbox.url, on: ["interrupt.opened" as const] };
  await client.webhooks.put("mine", webhook);
  await expect(client.webhooks.put("other", webhook)).rejects.toMatchObject({ status: 429 });
  const { id } = await client.start("t1", { input: "go" });
  let after: string | undefined;
  for await (const _ of client.runs.events("t1", id, { onCursor: (at) => (after ??= at) }));
  for await (const _ of client.runs.events("t1", id, { after }));
  for (const text of [agents.replace("ask_user", "'*'"), "agents: 1"]) {
    await writeFile(join(dir, "agents.yaml"), text);
    await app.reload();
  }
  for (const line of [
    'skein_interrupts_total{kind="question"}',
    'skein_webhook_notifications_total{outcome="delivered"}',
    'skein_webhook_deliveries_total{outcome="delivered"}',
    'skein_audit_entries_total{outcome="written"}',
    'skein_refused_total{limit="webhooks"}',
    "skein_stream_resumes_total",
    'skein_hook_failures_total{hook="shaky"}',
    'skein_model_cost_millionths_total{model="scripted:test"}',
    'skein_config_reloads_total{outcome="ok"}',
    'skein_config_reloads_total{outcome="invalid"}',
    "skein_sqlite_bytes",
    'skein_http_request_seconds_count{route="/threads/:thread_id/runs"}',
    'skein_store_seconds_count{operation="runs.start"}',
    'skein_tool_call_seconds_count{tool="ask_user"}',
  ])
    await expect.poll(async () => sampleOf(await page(), line), { message: line }).toBeGreaterThan(0);
});

describe("values that users choose are not labels", () => {
  const marks = ["tenant-of-ada", "user-ada", "thread-of-ada", "tool_of_ada", "model-of-ada", "path-of-ada"];

  test("no tenant, user, thread, run, tool, model or path of theirs is in the response", async () => {
    const { url } = await startServer({
      config: BEHIND_GATEWAY,
      script: [{ call: [{ tool: "tool_of_ada" }] }, { say: "ok" }],
    });
    const ada = asUser("user-ada", "read,run,admin", "tenant-of-ada");
    const tools = [{ name: "tool_of_ada", description: "x", parameters: { type: "object" } }];
    const run = await post(`${url}/threads/thread-of-ada/runs`, { input: "go", tools }, ada);
    await run.ended();
    const other = { input: "go", model: "openai:model-of-ada" };
    await (await post(`${url}/threads/thread-of-ada/runs`, other, ada)).ended();
    await fetch(`${url}/path-of-ada`, { headers: ada });
    let page = "";
    const unknownPaths = async () => {
      page = await read(url, ada);
      return sampleOf(page, 'skein_http_requests_total{route="other",method="GET",status="404"}');
    };
    await expect.poll(unknownPaths).toBe(1);
    const [, , , , id = "none"] = (run.headers.get("location") ?? "").split("/");
    expect([...marks, id].filter((mark) => page.includes(mark))).toEqual([]);
  });
});

describe("access", () => {
  const config = { ...BEHIND_GATEWAY, metrics: { token: TOKEN } };
  const as = (scopes: string) => asUser("ada", scopes);
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  test("is granted to the scope `admin` and the token of `metrics.token`, and to no one else", async () => {
    const { url } = await startServer({ config });
    const status = async (headers: Record<string, string>) =>
      (await fetch(`${url}/metrics`, { headers })).status;
    expect(await status(bearer(TOKEN))).toBe(200);
    expect(await status(as("admin"))).toBe(200);
    expect(await status(as("read,run,tools"))).toBe(403);
    expect(await status({})).toBe(401);
    expect(await status(bearer(`${TOKEN}x`))).toBe(401);
  });

  test("is turned off by `metrics.enabled: false`", async () => {
    const { url } = await startServer({ config: { metrics: { enabled: false } } });
    expect((await fetch(`${url}/metrics`)).status).toBe(404);
  });

  test("to `/ready?verbose` shows them each dependency, and others only the answer of `/ready`", async () => {
    const { url } = await startServer({ config });
    const ready = async (headers: Record<string, string>) =>
      (await fetch(`${url}/ready?verbose`, { headers })).json();
    const up = { status: "up", since: expect.any(String), checked_at: expect.any(String) };
    const dependencies = [
      { name: "store", ...up },
      { name: "backends", ...up },
    ];
    expect(await ready(bearer(TOKEN))).toEqual({ status: "ready", dependencies });
    expect(await ready(as("read"))).toEqual({ status: "ready" });
    expect(await ready({})).toEqual({ status: "ready" });
  });
});

promtool.test("promtool finds no problem in the response", async () => {
  const { page } = await ran({ config: { store: "sqlite" } });
  const check = spawn("promtool", ["check", "metrics"], { stdio: ["pipe", "pipe", "pipe"] });
  check.stdin.end(await page());
  const [said, [code]] = await Promise.all([
    Promise.all([text(check.stdout), text(check.stderr)]),
    once(check, "close"),
  ]);
  expect([code, said.join("")]).toEqual([0, ""]);
});

const OPEN_METRICS = "application/openmetrics-text";

/** As Prometheus asks by default. */
const accept = `${OPEN_METRICS};version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1`;

test("a scraper that accepts OpenMetrics gets it, with the same series as the text format", async () => {
  const { url, page } = await ran({ config: { store: "sqlite" } });
  // Series can be added between the two requests, for example by a garbage collection. Only those of active handles, requests and
  // resources end.
  const plain = await page();
  const answer = await fetch(`${url}/metrics`, { headers: { accept } });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    `${OPEN_METRICS}; version=1.0.0; charset=utf-8`,
  ]);
  const open = await answer.text();
  expect(open).toMatch(/\n# EOF\n$/);
  expect(open).toContain("# TYPE skein_runs_ended counter\n");
  const series = (text: string) =>
    new Set(text.split("\n").flatMap((line) => (/^[a-z]/.test(line) ? [line.replace(/ \S+$/, "")] : [])));
  const lasting = [...series(plain)].filter((each) => !each.startsWith("nodejs_active_"));
  expect(lasting.filter((each) => !series(open).has(each))).toEqual([]);
});

promtool.test("Prometheus's own parser reads the OpenMetrics response", async () => {
  const { url, dir } = await ran({ config: { store: "sqlite" } });
  const open = await (await fetch(`${url}/metrics`, { headers: { accept } })).text();
  // promtool reads samples that say when they were taken.
  const dated = open.replace(/^([a-z].*)$/gm, "$1 1700000000");
  await writeFile(join(dir, "page.om"), dated);
  const args = ["tsdb", "create-blocks-from", "openmetrics", join(dir, "page.om"), join(dir, "blocks")];
  const { status, stderr } = spawnSync("promtool", args, { encoding: "utf8" });
  expect(status, stderr).toBe(0);
});

const FILES = ["deploy/prometheus/alerts.yaml", "deploy/grafana/skein.json"] as const;

test("the alerts and the dashboard name only metrics that a server has, and with docs/reference/metrics.md all of them", async () => {
  const { page } = await ran({ config: { store: "sqlite" } });
  const has = new Set((await page()).match(/(?<=^# TYPE )\S+/gm));
  const own = [...has].filter((name) => name.startsWith("skein_"));
  const [alerts, dashboard, docs] = await Promise.all(
    [...FILES, "docs/reference/metrics.md"].map((file) => readFile(file, "utf8")),
  );
  for (const text of [alerts, dashboard]) {
    const named = [...new Set(text?.match(/\b(?:skein|nodejs|process)_[a-z0-9_]+/g))];
    const family = (name: string) => name.replace(/_(?:bucket|sum|count)$/, "");
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !has.has(name) && !has.has(family(name)))).toEqual([]);
  }
  const shown = `${alerts}${dashboard}`;
  expect(own.filter((name) => !shown.includes(name))).toEqual([]);
  const rules = alerts?.match(/(?<=alert: )\w+/g) ?? [];
  expect(rules.length).toBeGreaterThan(10);
  expect([...own, ...rules].filter((name) => !docs?.includes(`\`${name}`))).toEqual([]);
});

promtool.test("promtool accepts the alerts, and they fire as they should", () => {
  for (const args of [
    ["check", "rules", "alerts.yaml"],
    ["test", "rules", "alerts.test.yaml"],
  ]) {
    const { status, stdout, stderr } = spawnSync("promtool", args, { cwd: "deploy/prometheus" });
    expect(status, `${stdout}${stderr}`).toBe(0);
  }
});
