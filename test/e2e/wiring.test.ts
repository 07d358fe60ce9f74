// What server.yaml and the environment say reaches the part of the server that it is about. One key each, through the
// real process; what each part does with its settings is tested with that part.

import { randomUUID } from "node:crypto";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { hostile, processesWith } from "../agent/tools/mcp/opened.ts";
import { dataOf } from "../support/drain.ts";
import { completeLog, serveWith } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { post, view } from "../support/sse.ts";

const json = { "content-type": "application/json" };
const send = async (url: string, body: unknown, method = "POST") => {
  const response = await fetch(url, { method, headers: json, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
};
const statusOf = async (url: string) => (await fetch(url)).status;
const background = (url: string, thread: string, more: object = {}) =>
  send(`${url}/threads/${thread}/runs`, { input: "go", background: true, ...more });
const runOn = async (url: string, thread: string, input = "go") =>
  (await post(`${url}/threads/${thread}/runs`, { input })).ended();

describe("limits", () => {
  test("body_bytes, upload_bytes and streams limit requests and viewers, with the operator's agents file and DATA_DIR", async () => {
    const server = await serveWith(
      { limits: { body_bytes: 300, upload_bytes: 8, streams: 1 }, streams: { heartbeat: "0.05s" } },
      { agent: { backend: { type: "local" }, tools: ["wether"] } },
    );
    const { url, dir } = server;
    expect((await send(`${url}/threads`, { metadata: { note: "x".repeat(300) } })).status).toBe(413);
    const upload = (body: string) => fetch(`${url}/backend/files/f`, { method: "PUT", body });
    expect((await upload("x".repeat(9))).status).toBe(413);
    expect((await upload("x".repeat(8))).status).toBe(201);

    const listener = await view(`${url}/events`);
    expect(await statusOf(`${url}/events`)).toBe(503);
    await expect.poll(() => listener.others.join()).toContain("heartbeat");
    listener.leave();

    expect(await readdir(join(dir, "data", "workspaces"))).toHaveLength(1);
    const health = { version: packageJson.version, agents: 1 };
    expect(await (await fetch(`${url}/health`)).json()).toMatchObject(health);
    // What is doubtful is warned of at the start, and when it changes.
    const path = join(dir, "agents.yaml");
    await expect.poll(() => server.output()).toContain("`wether`");
    await writeFile(path, (await readFile(path, "utf8")).replace("wether", "trafic"));
    await expect.poll(() => server.output()).toContain("`trafic`");
  });

  test("runs, queued_runs and waiting_threads limit active and waiting runs", async () => {
    const { url } = await serveWith(
      { store: "memory", limits: { runs: 1, queued_runs: 1, waiting_threads: 2 } },
      { script: "- { say: a b, delay_ms: 600000 }" },
    );
    expect(await background(url, "t1")).toMatchObject({ status: 202, body: { status: "running" } });
    expect((await background(url, "t1", { on_busy: "enqueue" })).status).toBe(202);
    expect(await background(url, "t1", { on_busy: "enqueue" })).toMatchObject({
      status: 429,
      body: { code: "queue_full", details: { limit: 1 } },
    });
    expect(await background(url, "t2")).toMatchObject({ status: 202, body: { status: "pending" } });
    expect(await background(url, "t3")).toMatchObject({
      status: 429,
      body: { code: "limit_exceeded", details: { limit: 2 } },
    });
  });
});

test("streams.stall: a viewer that reads nothing for that long loses its place", async () => {
  const said = `say: "${`${"x".repeat(700)} `.repeat(1_200)}"`;
  const turns = [`- &long { call: [{ tool: write_todos, args: { todos: [] } }], ${said} }`];
  const { url } = await serveWith(
    { store: "memory", limits: { streams: 1 }, streams: { stall: "5s" } },
    { script: [...turns, ...Array<string>(14).fill("- *long"), "- { say: Done. }"].join("\n") },
  );
  const run = await background(url, "t1");
  const path = `/threads/t1/runs/${run.body.id}/events`;
  // It is never read from.
  const viewer = await fetch(url + path);
  expect(viewer.status).toBe(200);
  expect(await statusOf(`${url}/events`)).toBe(503);
  await expect.poll(() => statusOf(`${url}/events`)).toBe(200);
  // It was cut off, and has not ended.
  await expect(viewer.text()).rejects.toThrow();
});

describe("retention", () => {
  test("threads and interrupted_threads: in memory, both are deleted if they are unused", async () => {
    const { url } = await serveWith(
      { store: "memory", retention: { threads: "0.01s", interrupted_threads: "0.01s" } },
      {
        agent: { tools: ["ask_user"] },
        script: "- { call: [{ tool: ask_user, args: { question: Which? } }] }",
      },
    );
    const events = await runOn(url, "t1");
    expect(dataOf(events, "done")[0]?.status).toBe("interrupted");
    const gone = (thread: string) =>
      expect.poll(() => statusOf(`${url}/threads/${thread}`), { interval: 100 }).toBe(404);
    await gone("t1");
    expect((await send(`${url}/threads`, { id: "t2" })).status).toBe(201);
    await gone("t2");
  });

  test("memory_bytes: the least recently used thread in memory makes room", async () => {
    const { url } = await serveWith({ store: "memory", retention: { memory_bytes: 300_000 } });
    for (const thread of ["t1", "t2", "t3"]) await runOn(url, thread, "x".repeat(200_000));
    expect(await statusOf(`${url}/threads/t1`)).toBe(404);
    expect(await statusOf(`${url}/threads/t3`)).toBe(200);
  });

  test("events and sweep: the events of an ended run are deleted, from the disk too", async () => {
    const { url, dir } = await serveWith({ retention: { events: "0.05s", sweep: "0.05s" } });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await viewer.ended();
    await expect.poll(() => statusOf(url + viewer.headers.get("location"))).toBe(410);
    await expect.poll(() => rowsIn(dir, "events")).toBe(0);
    await expect.poll(() => rowsIn(dir, "messages")).toBe(2);
  });

  /** In a copy of the database: its own file is the server's alone. A copy that is made during a write cannot be read. */
  async function rowsIn(dir: string, table: string): Promise<unknown> {
    const copy = await temporaryFolder();
    await cp(join(dir, "data"), copy, { recursive: true });
    const database = new DatabaseSync(join(copy, "skein.db"));
    const row = database.prepare(`SELECT count(*) AS count FROM ${table}`).get();
    database.close();
    return row?.count;
  }
});

const SPANS = ['"msg":"llm.call"', '"msg":"tool.call"'];

test.each(["debug", "trace"])("LOG_LEVEL=%s: a run's spans are logged", async (LOG_LEVEL) => {
  const script = "- { call: [{ tool: ls }] }\n- { say: ok }";
  const server = await serveWith({}, { script, env: { LOG_LEVEL } });
  await runOn(server.url, "t1");
  server.child.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  for (const span of SPANS) expect(server.output()).toContain(span);
});

test("at startup, the server warns about a Docker engine on another machine without TLS, but not about one on this machine", async () => {
  const agent = { backend: { type: "docker", image: "debian" } };
  const start = (DOCKER_HOST: string) => serveWith({}, { agent, env: { DOCKER_HOST } });
  const [open, own] = [await start("tcp://192.0.2.1:2375"), await start("tcp://127.0.0.1:1")];
  await expect.poll(() => open.output()).toMatch(/tcp:\/\/192.0.2.1:2375.*without TLS/);
  expect(await completeLog(own)).not.toContain("without TLS");
});

test("the agents file is reloaded after a change; its MCP servers are started and end with the server", async () => {
  const mark = randomUUID();
  const { url, dir, child, exited, output } = await serveWith(
    {},
    { script: "- { call: [{ tool: mcp__a__echo, args: { n: 1 } }] }\n- { say: ok }" },
  );
  const file = JSON.parse(await readFile(join(dir, "agents.yaml"), "utf8"));
  file.agents.assistant.tools = ["mcp__a__*"];
  file.mcp_servers = { a: { ...hostile("normal"), env: { TEST_MARK: mark } } };
  await writeFile(join(dir, "agents.yaml"), JSON.stringify(file));
  const answer = async () => dataOf(await runOn(url, randomUUID()), "on_tool_end")[0]?.output;
  await expect.poll(answer).toBe('{"n":1}');
  expect(await processesWith(mark)).not.toEqual([]);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  await expect.poll(() => processesWith(mark)).toEqual([]);
  // Without LOG_LEVEL.
  for (const span of SPANS) expect(output()).not.toContain(span);
});
