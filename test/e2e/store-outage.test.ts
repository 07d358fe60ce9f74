// A Redis that goes away while runs are at work, at every call that a run makes.

import { readdir } from "node:fs/promises";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { checkGrammar } from "../../src/core/grammar.ts";
import { createRedisStores } from "../../src/stores/redis/index.ts";
import { eventsOf, readAll, seqsOf, upTo } from "../stores/fixture.ts";
import { cuttingProxy } from "../support/cutting-proxy.ts";
import { dataOf } from "../support/drain.ts";
import { gate } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import { startRedis } from "../support/redis.ts";
import { startServer } from "../support/server.ts";
import { cast, completing, delegating } from "../support/team.ts";

const redis = await startRedis("--databases", "100");
afterAll(() => redis?.close());
let databases = 0;
/** Outages that are tried at once. */
const AT_ONCE = 5;

const LOCAL = { tenant: "default", user: "default" };
const AGENTS = `
defaults: { model: "scripted:test" }
agents:
  lead: { system_prompt: I am lead, tools: [gate], subagents: [coder], hooks: { notes: true, tasks: true } }
  coder: { system_prompt: I am coder }
`;
const QUOTAS = { user: { concurrent_runs: 50, threads: 50, tokens_per_day: 1_000_000 } };
const script = cast({
  lead: [
    { call: [{ tool: "gate" }] },
    { say: "The first run is done." },
    { call: [{ tool: "create_tasks", args: { tasks: [{ id: "parse", title: "Parse" }] } }] },
    { call: [{ tool: "claim_task", args: { id: "parse" } }] },
    { call: [{ tool: "write_note", args: { name: "plan", text: "Parse it." } }] },
    { call: [{ tool: "read_note", args: { name: "plan" } }] },
    delegating({ agent: "coder", task: "Parse it" }),
    { say: "The second run is done." },
  ],
  coder: [completing("Parsed.")],
});

/** A server behind a proxy, at a moment at which a second run waits for the first one, which waits for the gate. */
async function waiting() {
  const proxy = await cuttingProxy(redis?.port ?? 0);
  onTestFinished(() => proxy.close());
  const { tool, entered, open } = gate();
  const database = databases++;
  const url = `redis://127.0.0.1:${proxy.port}/${database}`;
  const config = { store: "redis", redis: { url, lease: "12s" }, quotas: QUOTAS };
  const server = await startServer({ script, tools: [tool], agents: AGENTS, config });
  const start = async (input: string) => {
    const body = JSON.stringify({ input, on_busy: "enqueue", background: true });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`${server.url}/threads/t/runs`, { method: "POST", headers, body });
    return { owner: LOCAL, thread_id: "t", run_id: ((await reply.json()) as { id: string }).id };
  };
  const first = await start("1");
  await entered;
  const second = await start("2");
  // It does not go through the proxy.
  const stores = await createRedisStores({ url: `${redis?.url}/${database}` });
  onTestFinished(() => stores.close());
  const logs = () => Promise.all([first, second].map((run) => readAll(stores, run)));
  return { url: server.url, proxy, open, logs };
}

/** The names of the scripts, by their hashes. */
async function scriptNames(): Promise<ReadonlyMap<string, string>> {
  const folder = new URL("../../src/stores/redis/", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ts"));
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, folder).href) as Promise<object>),
  );
  const scripts = modules.flatMap((each) => Object.entries(each));
  return new Map(scripts.flatMap(([name, value]) => (value?.sha ? [[value.sha, name]] : [])));
}

needing(redis, "redis-server").describe("a Redis that goes away", () => {
  test("lets every run succeed when it is back within the lease, at any call", async () => {
    const usual = await waiting();
    const asked = usual.proxy.watch();
    usual.open();
    await usual.logs();
    const names = await scriptNames();
    const called = [...asked].map((sha) => names.get(sha));
    for (const name of ["readMessages", "readState", "reserve", "commitAdding", "readEvents"])
      expect(called).toContain(name);

    const shas = [...asked];
    for (let from = 0; from < shas.length; from += AT_ONCE)
      await Promise.all(shas.slice(from, from + AT_ONCE).map((sha) => outageAt(sha, names.get(sha))));
  }, 240_000);
});

/** Redis goes away when a run calls this script, and comes back when every other call has given up. */
async function outageAt(sha: string, name: string | undefined): Promise<void> {
  const { url, proxy, open, logs } = await waiting();
  const gone = proxy.closeAt(sha);
  open();
  await gone;
  expect((await fetch(`${url}/threads/t`)).status, name).toBe(503);
  proxy.reopen();
  for (const entries of await logs()) {
    expect(seqsOf(entries), name).toEqual(upTo(entries.length));
    expect(checkGrammar(eventsOf(entries)), name).toEqual([]);
    expect(dataOf(eventsOf(entries), "done"), name).toMatchObject([{ status: "success" }]);
  }
}
