// Connections to PostgreSQL that break at every statement of a run: before it arrives, and with its answer on the way.

import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { Message } from "../../src/agent/core/message.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import { withTimeout } from "../../src/engine/stores/shared/outages.ts";
import { upTo } from "../engine/stores/fixture.ts";
import { dataOf, names } from "../support/drain.ts";
import { needing } from "../support/needing.ts";
import { type PostgresProxy, postgresProxy, type Trap } from "../support/postgres-proxy.ts";
import { sampled } from "../support/seed.ts";
import { startServer } from "../support/server.ts";
import { type SharedStore, sharedPostgres } from "../support/shared-stores.ts";
import { numbers, view } from "../support/sse.ts";
import { contradictionsIn } from "../support/store-check.ts";
import { cast, completing, delegating } from "../support/team.ts";

/** Servers at once, each with one case at a time, in which so many connections break. */
const SERVERS = 4;
const TRAPS_AT_ONCE = 4;
/** Far longer than a case takes: it ends one that hangs, with its name. */
const CASE_MS = 180_000;

const AGENTS = `
defaults: { model: "scripted:test" }
agents:
  lead: { system_prompt: I am lead, tools: [wait], subagents: [coder], hooks: { notes: true, tasks: true } }
  coder: { system_prompt: I am coder }
`;
const QUOTAS = { user: { concurrent_runs: 50, threads: 5000, tokens_per_day: 1_000_000_000 } };
const script = cast({
  lead: [
    { say: "I wait.", call: [{ tool: "wait" }] },
    { say: "The first run is done." },
    { call: [{ tool: "create_tasks", args: { tasks: [{ id: "parse", title: "Parse" }] } }] },
    { call: [{ tool: "write_note", args: { name: "plan", text: "Parse it." } }] },
    delegating({ agent: "coder", task: "Parse it" }),
    { say: "The second run is done." },
  ],
  coder: [completing("Parsed.")],
});

/** Some of what is certainly among the statements of a run. */
const STATEMENTS = [
  /^BEGIN$/,
  /^COMMIT$/,
  /INSERT INTO events/,
  /INSERT INTO runs/,
  /UPDATE turns/,
  /INSERT INTO commits/,
];

interface Cuttable {
  readonly proxy: PostgresProxy;
  readonly url: string;
  /** The url of its database, past the proxy. */
  readonly direct: string;
  /** A thread's first run is not over before this is called. */
  open(thread: string): void;
}

/** A server behind a proxy, on a database of its own. */
async function started(postgres: SharedStore): Promise<Cuttable> {
  const direct = await postgres.database();
  const proxy = await postgresProxy(Number(new URL(direct).port));
  onTestFinished(() => proxy.close());
  const through = new URL(direct);
  through.port = String(proxy.port);
  const opened = new Map<string, PromiseWithResolvers<void>>();
  const gateOf = (thread: string) => {
    const gate = opened.get(thread) ?? Promise.withResolvers<void>();
    opened.set(thread, gate);
    return gate;
  };
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: z.object({}),
    execute: async (_args, _call, run) => {
      await gateOf(run.threadId).promise;
      return "It is over.";
    },
  });
  const config = { store: "postgres", postgres: { url: through.href, lease: "12s" }, quotas: QUOTAS };
  const { url } = await startServer({ script, tools: [wait], agents: AGENTS, config });
  return { proxy, url, direct, open: (thread) => gateOf(thread).resolve() };
}

/** What two runs of a thread leave, of which the second waits for the first. */
interface Course {
  readonly events: readonly string[];
  readonly messages: readonly (readonly [role: string, content: unknown])[];
  /** Model calls that were counted. */
  readonly calls: number;
}

async function played({ url, open }: Cuttable, thread: string): Promise<Course> {
  const ask = async <T>(path: string, init?: RequestInit) => {
    const answer = await fetch(`${url}${path}`, init);
    expect(answer.ok, path).toBe(true);
    return (await answer.json()) as T;
  };
  const start = async (input: string) => {
    const body = JSON.stringify({ input, on_busy: "enqueue", background: true });
    const headers = { "content-type": "application/json" };
    const { id } = await ask<{ id: string }>(`/threads/${thread}/runs`, { method: "POST", headers, body });
    return view(`${url}/threads/${thread}/runs/${id}/events`);
  };
  const counted = async () => (await ask<{ totals: { calls: number } }>("/usage")).totals.calls;
  const before = await counted();
  const viewers = [await start("first"), await start("second")];
  open(thread);
  const events = [];
  for (const viewer of viewers) {
    const seen = await viewer.ended();
    expect(numbers(viewer.seen)).toEqual(upTo(viewer.seen.length));
    expect(dataOf(seen, "done")).toMatchObject([{ status: "success" }]);
    events.push(...names(seen));
  }
  const { items } = await ask<{ items: Message[] }>(`/threads/${thread}/messages`);
  return {
    events,
    messages: items.map(({ role, content }) => [role, content]),
    calls: (await counted()) - before,
  };
}

/** The name of a case, in which all of these traps are set. */
const nameOf = (traps: readonly Trap[]) =>
  traps.map(({ sql, nth, lost }) => `${lost} ${nth} of ${sql.trim().replace(/\s+/g, " ")}`).join("\n");

/** Plays a case on each server at a time, until all have been; returns the traps that were met. */
async function tried(
  servers: readonly Cuttable[],
  cases: readonly (readonly Trap[])[],
  expected: Course,
): Promise<Trap[]> {
  const left = [...cases.entries()];
  const met: Trap[] = [];
  const work = async (server: Cuttable) => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [number, traps] = next;
      const unmet = server.proxy.set(traps);
      const name = nameOf(traps);
      const course = await withTimeout(CASE_MS, played(server, `t${number}`)).catch((cause) => {
        throw new Error(`${name}: ${cause.message}`, { cause });
      });
      expect(course, name).toEqual(expected);
      met.push(...traps.filter((trap) => !unmet.has(trap)));
    }
  };
  await Promise.all(servers.map(work));
  return met;
}

/** The statements of a course in which nothing breaks, each with its number among those of one text. */
async function usual(server: Cuttable) {
  const watched = server.proxy.watch();
  const course = await played(server, "usual");
  const times = new Map<string, number>();
  const statements = [...watched].map((sql) => {
    const nth = (times.get(sql) ?? 0) + 1;
    times.set(sql, nth);
    return { sql, nth };
  });
  return { course, statements };
}

const postgres = await sharedPostgres();
afterAll(() => postgres?.close());

needing(postgres, "postgres").describe("connections to PostgreSQL that break", () => {
  test("at any statement of a run, before or after PostgreSQL executes it, do not change the run", async () => {
    const store = postgres ?? expect.fail("There was a PostgreSQL a moment ago.");
    const first = await started(store);
    const { course, statements } = await usual(first);
    const servers = [first];
    while (servers.length < SERVERS) servers.push(await started(store));
    const different = statements.filter(({ sql, nth }) => nth === 1 || sql === "COMMIT");
    const isCertain = ({ sql, nth }: { sql: string; nth: number }) =>
      nth === 1 && STATEMENTS.some((statement) => statement.test(sql));
    const traps = [
      ...different.filter(isCertain),
      ...sampled(
        different.filter((each) => !isCertain(each)),
        4,
      ),
    ].flatMap((statement): Trap[] => [
      { ...statement, lost: "statement" },
      { ...statement, lost: "answer" },
    ]);
    // Those of a case are far apart.
    const count = Math.ceil(traps.length / TRAPS_AT_ONCE);
    const cases = upTo(count).map((n) => traps.filter((_, index) => index % count === n - 1));
    const met = await tried(servers, cases, course);
    for (const statement of STATEMENTS)
      for (const lost of ["statement", "answer"])
        expect(met).toContainEqual(expect.objectContaining({ lost, sql: expect.stringMatching(statement) }));
    for (const { direct } of servers) expect(await contradictionsIn({ postgres: direct })).toEqual([]);
  }, 900_000);
});
