// Two tenants on one server: one of them floods it, and the requests of the other succeed.

import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Script } from "../../src/agent/models/scripted.ts";
import { dataOf } from "../support/drain.ts";
import { asUser } from "../support/gateway.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";
import { cast, delegating, TEAM } from "../support/team.ts";

const HEADER = { scheme: "header", trusted_proxies: ["127.0.0.0/8"] };

/** A server behind a gateway, which serves several tenants. */
const serveTenants = ({ config, ...options }: ServerOptions) =>
  startServer({ agents: AGENTS, ...options, config: { auth: HEADER, ...config } });
const AGENTS = "agents: { assistant: { model: 'scripted:test' } }";

const as = (tenant: string, user = "ada") => asUser(user, "read run tools", tenant);

const leaving = (viewer: Viewer): Viewer => {
  onTestFinished(() => viewer.leave());
  return viewer;
};

describe("a tenant that opens all its event streams", () => {
  const flood = async (url: string) => {
    const open: Viewer[] = [];
    for (;;) {
      const viewer = leaving(await view(`${url}/events`, { headers: as("flood") }));
      if (viewer.status !== 200) return { open, refused: viewer };
      open.push(viewer);
    }
  };

  test("is refused at its share with a clear error, and another tenant's streams open", async () => {
    const { url } = await serveTenants({ config: { limits: { streams: 16 } } });
    const { open, refused } = await flood(url);
    expect(open).toHaveLength(14);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("5");
    const again = await fetch(`${url}/events`, { headers: as("flood", "eve") });
    expect(await again.json()).toMatchObject({
      code: "limit_exceeded",
      detail: expect.stringMatching(/has 14 of the 16 event streams of this server \(`limits.streams`\)/),
      details: { limit: "limits.streams", of: "tenant", most: 14, retry_after_ms: 5000 },
    });

    const run = await post(`${url}/threads/t/runs`, { input: "go" }, as("other"));
    expect((await run.ended()).at(-1)).toMatchObject({ event: "done" });
    expect(leaving(await view(`${url}/events`, { headers: as("other") })).status).toBe(200);
  });

  test("gets none of its released streams while another one uses its half", async () => {
    const { url } = await serveTenants({ config: { limits: { streams: 16 } } });
    const { open } = await flood(url);
    const other = leaving(await view(`${url}/events`, { headers: as("other") }));
    expect(other.status).toBe(200);
    for (const viewer of open.slice(0, 3)) viewer.leave();
    // 11 of 16 are more than half.
    await expect
      .poll(async () => leaving(await view(`${url}/events`, { headers: as("other") })).status)
      .toBe(200);
    expect((await fetch(`${url}/events`, { headers: as("flood") })).status).toBe(429);
  });

  test("can use all of them if there is no other tenant", async () => {
    const { url } = await startServer({ config: { limits: { streams: 3 } } });
    for (let n = 0; n < 3; n++) expect(leaving(await view(`${url}/events`)).status).toBe(200);
    expect((await fetch(`${url}/events`)).status).toBe(503);
  });
});

/** Hangs when the user says so. */
const answering: Script = ({ messages }) =>
  JSON.stringify(messages.at(-1)).includes("hang") ? { say: "a b", delay_ms: 600_000 } : { say: "ok" };

const statusesOf = async (url: string, tenant: string) => {
  const response = await fetch(`${url}/threads?limit=100`, { headers: as(tenant) });
  const { items } = (await response.json()) as { items: { status: string }[] };
  return items.map(({ status }) => status);
};

/** Starts runs that hang, each on a thread of its own. */
async function hang(url: string, tenant: string, threads: readonly string[]): Promise<void> {
  for (const thread of threads) {
    const response = await fetch(`${url}/threads/${thread}/runs`, {
      method: "POST",
      headers: { "content-type": "application/json", ...as(tenant) },
      body: JSON.stringify({ input: "hang", background: true }),
    });
    expect(response.status).toBe(202);
  }
}

const many = (name: string) => Array.from({ length: 12 }, (_, n) => `${name}${n}`);

const outcome = async (url: string, tenant: string, thread = "t") =>
  (await (await post(`${url}/threads/${thread}/runs`, { input: "go" }, as(tenant))).ended()).at(-1);

describe("a tenant whose runs hang in all its slots", () => {
  test("does not make another tenant's first run wait", async () => {
    const { url } = await serveTenants({ script: answering, config: { limits: { runs: 4 } } });
    await hang(url, "flood", many("t"));
    expect(await outcome(url, "other")).toMatchObject({ event: "done", data: { status: "success" } });
    expect((await statusesOf(url, "flood")).filter((status) => status === "busy")).toHaveLength(12);
  });
});

test("a tenant whose subagents hang in all its places does not keep another tenant's from working", async () => {
  const task = (text: string) => ({ agent: "coder", task: text });
  const script = cast({
    lead: ({ messages }, turn) =>
      turn > 0
        ? { say: "Lead is done." }
        : delegating(...Array(8).fill(task(JSON.stringify(messages.at(-1))))),
    coder: (request) => answering(request, 0),
  });
  const config = { limits: { subagents: 4 } };
  const { url } = await serveTenants({ agents: TEAM, script, config });
  await hang(url, "flood", ["one", "two"]);
  const run = await (await post(`${url}/threads/t/runs`, { input: "go" }, as("other"))).ended();
  expect(run.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  expect(dataOf(run, "on_subagent_end").map(({ status }) => status)).toEqual(Array(8).fill("completed"));
});

test("a tenant that floods the memory with threads loses its own, and none of another tenant's", async () => {
  const config = { store: "memory", retention: { memory_bytes: 2_000_000 } };
  const { url } = await serveTenants({ script: () => ({ say: "ok" }), config });
  for (let n = 0; n < 5; n++) await outcome(url, "other", `t${n}`);
  const input = "x".repeat(200_000);
  for (let n = 0; n < 12; n++) {
    await (await post(`${url}/threads/f${n}/runs`, { input }, as("flood"))).ended();
    const headers = { "content-type": "application/json", ...as("flood") };
    for (let copy = 0; copy < 3; copy++)
      await fetch(`${url}/threads/f${n}/fork`, { method: "POST", headers, body: "{}" });
  }
  expect(await statusesOf(url, "other")).toHaveLength(5);
  expect((await statusesOf(url, "flood")).length).toBeLessThan(12);
});

test("a server for several tenants without quotas warns about it at startup, and no other server does", async () => {
  const warningsOf = async (config: object) => {
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    await startServer({ agents: AGENTS, config, logger });
    return lines.join("");
  };
  expect(await warningsOf({ auth: HEADER })).toMatch(
    /AUTH=header serves several tenants, but `quotas` sets no limit/,
  );
  expect(await warningsOf({ auth: HEADER, quotas: { user: { concurrent_runs: 5 } } })).not.toContain(
    "quotas",
  );
  expect(await warningsOf({})).not.toContain("quotas");
});
