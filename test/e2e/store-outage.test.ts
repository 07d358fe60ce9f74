// A store that goes away while runs are at work, on Redis also at every call that a run makes, and while there are none.

import { readdir } from "node:fs/promises";
import { Redis } from "ioredis";
import pg from "pg";
import { type Logger, pino } from "pino";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { createRedisStores } from "../../src/engine/stores/redis/index.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { eventsOf, readAll, seqsOf, upTo } from "../engine/stores/fixture.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { gate } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import { sampled } from "../support/seed.ts";
import { type ServerOptions, startServer } from "../support/server.ts";
import { SHARED_STORES, type SharedStore, sharedRedis } from "../support/shared-stores.ts";
import { numbers, post } from "../support/sse.ts";
import { cast, completing, delegating } from "../support/team.ts";

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
const WORDS = Array.from({ length: 40 }, (_, n) => `word${n}`).join(" ");

/** What is certainly among the calls of a run on Redis. */
const CALLS = ["readMessages", "readState", "reserve", "commitAdding", "readEvents"];

interface Behind {
  readonly url: string;
  readonly proxy: CuttingProxy;
  /** The store's own url, past the proxy. */
  readonly direct: string;
}

/** A server behind a proxy, on an empty database. Its runs wait for the store for as long as a lease. */
async function behindProxy(shared: SharedStore, options: ServerOptions, lease = "60s"): Promise<Behind> {
  const direct = await shared.database();
  const proxy = await cuttingProxy(Number(new URL(direct).port));
  onTestFinished(() => proxy.close());
  const url = new URL(direct);
  url.port = String(proxy.port);
  const config = { store: shared.kind, [shared.kind]: { url: url.href, lease }, quotas: QUOTAS };
  const server = await startServer({ ...options, config });
  return { url: server.url, proxy, direct };
}

/** A server at a moment at which a second run waits for the first one, which waits for the gate. */
async function waiting(redis: SharedStore) {
  const { tool, entered, open } = gate();
  const { url, proxy, direct } = await behindProxy(redis, { script, tools: [tool], agents: AGENTS }, "12s");
  const start = async (input: string) => {
    const body = JSON.stringify({ input, on_busy: "enqueue", background: true });
    const headers = { "content-type": "application/json" };
    const reply = await fetch(`${url}/threads/t/runs`, { method: "POST", headers, body });
    return { owner: LOCAL, thread_id: "t", run_id: ((await reply.json()) as { id: string }).id };
  };
  const first = await start("1");
  await entered;
  const second = await start("2");
  const stores = await createRedisStores({ url: direct });
  onTestFinished(() => stores.close());
  const logs = () => Promise.all([first, second].map((run) => readAll(stores, run)));
  return { url, proxy, open, logs };
}

/** Redis goes away at this call of a run, and comes back when every other call has given up. */
async function outageAt(redis: SharedStore, call: string, name: string): Promise<void> {
  const { url, proxy, open, logs } = await waiting(redis);
  const gone = proxy.closeAt(call);
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

/** The names of Redis's scripts, by their hashes. */
async function scriptNames(): Promise<ReadonlyMap<string, string>> {
  const folder = new URL("../../src/engine/stores/redis/", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".ts"));
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, folder).href) as Promise<object>),
  );
  const scripts = modules.flatMap((each) => Object.entries(each));
  return new Map(scripts.flatMap(([name, value]) => (value?.sha ? [[value.sha, name]] : [])));
}

/** How a store goes away, and comes back. */
interface Outage {
  readonly how: string;
  /** What the log says of it. */
  readonly cause: RegExp;
  begin(store: SharedStore): Promise<void>;
  end(store: SharedStore): Promise<void>;
}
const REFUSED = /ECONNREFUSED|ECONNRESET|terminated|closed|writeable/i;
const OUTAGES: readonly Outage[] = [
  {
    how: "killed and started again",
    cause: REFUSED,
    begin: (store) => store.kill(),
    end: (store) => store.start(),
  },
  {
    how: "silent for a while",
    cause: /no answer|timeout/i,
    begin: (store) => store.pause(),
    end: (store) => store.resume(),
  },
];

/** How a store refuses every write and yet answers, until that is over. */
interface StoreRefusal {
  readonly how: string;
  readonly begin: (direct: string) => Promise<unknown>;
  readonly end: (direct: string) => Promise<unknown>;
}

const askRedis = async (direct: string, ...commands: string[][]) => {
  // A busy Redis refuses what clients usually ask first.
  const client = new Redis(Number(new URL(direct).port), { enableReadyCheck: false });
  for (const [name = "", ...args] of commands) await client.call(name, ...args).catch(() => {});
  client.disconnect();
};
const askPostgres = async (direct: string, sql: string) => {
  const client = new pg.Client({ connectionString: direct });
  await client.connect();
  await client.query(sql).finally(() => client.end());
};
const setting = (name: string, during: string, after: string) => ({
  begin: (direct: string) => askRedis(direct, ["CONFIG", "SET", name, during]),
  end: (direct: string) => askRedis(direct, ["CONFIG", "SET", name, after]),
});
/** As a full disk and the like answer: from below the statement that writes. */
const failing = (code: string): Omit<StoreRefusal, "how"> => ({
  begin: (direct) =>
    askPostgres(
      direct,
      `SET search_path = skein;
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'refused for a test' USING ERRCODE = '${code}'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON events EXECUTE FUNCTION refuse();
      CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON turns EXECUTE FUNCTION refuse();
      CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON runs EXECUTE FUNCTION refuse()`,
    ),
  end: (direct) => askPostgres(direct, "DROP FUNCTION skein.refuse() CASCADE"),
});
const STORE_REFUSALS: Readonly<Record<SharedStore["kind"], readonly StoreRefusal[]>> = {
  redis: [
    { how: "has lost its replicas", ...setting("min-replicas-to-write", "1", "0") },
    { how: "is full", ...setting("maxmemory", "1", "0") },
    {
      how: "is busy with a script",
      begin: async (direct) => {
        await askRedis(direct, ["CONFIG", "SET", "busy-reply-threshold", "1"]);
        void askRedis(direct, ["EVAL", "while true do end", "0"]);
      },
      end: (direct) =>
        askRedis(direct, ["SCRIPT", "KILL"], ["CONFIG", "SET", "busy-reply-threshold", "5000"]),
    },
  ],
  postgres: [
    { how: "has a full disk", ...failing("53100") },
    { how: "cannot read its disk", ...failing("58030") },
  ],
};

/** The level of lines for which people get up at night. */
const ERROR = 50;

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly dependency?: string;
  readonly reason?: string;
  readonly err?: { readonly message: string };
}

/** The log of a server. */
function listening(): { readonly logger: Logger; lines(): Line[] } {
  const written: string[] = [];
  const logger = pino({ level: "info" }, { write: (line) => void written.push(line) });
  return { logger, lines: () => written.map((line) => JSON.parse(line) as Line) };
}

/** The log has the cause of the outage and its end, once, and a short line for each request that was refused. */
function expectOneCause(lines: readonly Line[], cause: RegExp): void {
  const told = lines.filter(({ dependency }) => dependency === "store");
  expect(told.map(({ msg }) => msg)).toEqual([
    "a dependency is unavailable",
    "a dependency is available again",
  ]);
  expect(told[0]?.err?.message).toMatch(cause);
  const refusals = lines.filter(({ msg }) => msg === "request refused");
  expect(refusals.length).toBeGreaterThanOrEqual(3);
  for (const { reason, err } of refusals) {
    expect(reason).toMatch(/is not responding/);
    expect(err).toBeUndefined();
  }
  expect(lines.filter(({ level }) => level >= ERROR)).toEqual([]);
}

/** A run, once the store has room for all connections again. It is started once, however often it is requested. */
const accepted = (url: string) =>
  vi.waitFor(
    async () => {
      const viewer = await post(url, { input: "more" }, { "idempotency-key": "more" });
      expect(viewer.status).toBe(200);
      return viewer;
    },
    { timeout: 60_000 },
  );

const readiness = (url: string) => async () => (await fetch(`${url}/ready`)).status;

const startOf = (url: string, thread: string) =>
  fetch(`${url}/threads/${thread}/runs`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ input: "Hi", background: true }),
  });

/** Resolves once the server has said to everyone who asks that its store is away. */
async function refused(url: string): Promise<void> {
  await expect.poll(readiness(url)).toBe(503);
  const body = JSON.stringify({ input: "Hi" });
  const headers = { "content-type": "application/json" };
  const answers = await Promise.all([
    fetch(`${url}/threads`),
    fetch(`${url}/threads/t`),
    fetch(`${url}/threads/u/runs`, { method: "POST", headers, body }),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBe(503);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(await answer.json()).toMatchObject({ code: "unavailable" });
  }
  expect((await fetch(`${url}/health`)).status).toBe(200);
}

const redis = await sharedRedis();
afterAll(() => redis?.close());

// On PostgreSQL, where one call is several statements: statement-cuts.test.ts.
needing(redis, "redis-server").describe("a Redis outage", () => {
  test("lets every run succeed if it returns within the lease, at any call", async () => {
    const store = redis ?? expect.fail("There was a Redis a moment ago.");
    const usual = await waiting(store);
    const asked = usual.proxy.watch();
    usual.open();
    await usual.logs();
    const names = await scriptNames();
    const nameOf = (sha: string) => names.get(sha) ?? sha;
    const calls = [...asked];
    for (const call of CALLS) expect(calls.map(nameOf)).toContain(call);
    const broken = sampled(calls, 3);
    for (let from = 0; from < broken.length; from += AT_ONCE)
      await Promise.all(
        broken.slice(from, from + AT_ONCE).map((call) => outageAt(store, call, nameOf(call))),
      );
  }, 900_000);
});

for (const { start, program } of SHARED_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());
  const present = () => shared ?? expect.fail("There was a store a moment ago.");

  needing(shared, program).describe(`${program}: a store outage`, () => {
    for (const { how, cause, begin, end } of OUTAGES) {
      test(`${how}, during a run: refuses new work, and loses nothing`, async () => {
        const { logger, lines } = listening();
        const { url } = await behindProxy(present(), {
          script: [{ say: WORDS, delay_ms: 50 }, { say: "again" }],
          logger,
        });
        const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
        await viewer.until(({ event }) => event === "on_chat_model_stream");
        await begin(present());
        await refused(url);
        await end(present());
        const events = await viewer.ended();
        expect(numbers(viewer.seen)).toEqual(upTo(viewer.seen.length));
        expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
        expect(textSeen(events)).toBe(WORDS);
        await expect.poll(readiness(url)).toBe(200);
        expect(await (await fetch(`${url}/threads/t`)).json()).toMatchObject({
          status: "idle",
          message_count: 2,
        });
        expect(textSeen(await (await accepted(`${url}/threads/t/runs`)).ended())).toBe("again");
        expectOneCause(lines(), cause);
      });
    }

    for (const { how, begin, end } of STORE_REFUSALS[shared?.kind ?? "redis"]) {
      test(`or ${how} for a while: refuses new work immediately, and every run waits and succeeds`, async () => {
        const { url, direct } = await behindProxy(present(), { script: [{ say: WORDS, delay_ms: 50 }] });
        const viewer = await post(`${url}/threads/t/runs`, { input: "go" });
        await viewer.until(({ event }) => event === "on_chat_model_stream");
        await begin(direct);
        try {
          // The store may accept some before it refuses.
          let tries = 0;
          await expect.poll(async () => (await startOf(url, `u${tries++}`)).status).toBe(503);
          const answer = await startOf(url, "u");
          expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
          expect(await answer.json()).toMatchObject({ code: "unavailable" });
        } finally {
          await end(direct);
        }
        const events = await viewer.ended();
        expect(dataOf(events, "done")).toMatchObject([{ status: "success" }]);
        expect(textSeen(events)).toBe(WORDS);
        expect((await startOf(url, "u")).status).toBe(202);
      });
    }
  });
}
