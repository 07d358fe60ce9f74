// Scenarios in which a single factor grows: each measures a small amount of it, then a large amount. They run only on
// request.

import { randomUUID } from "node:crypto";
import { attackerOn } from "../attacks.ts";
import type { Server } from "../children.ts";
import { cpuMsOf } from "../meter.ts";
import { memoryOf, PROBED } from "../probing.ts";
import { type Pair, type Row, row, type Scenario } from "../rig.ts";
import { inputOf, script } from "../script.ts";
import { paceOf } from "./paced.ts";
import { beyondTheRequest } from "./turns.ts";

const CROWDS = [125, 250, 500, 1000, 2000];

export const crowd: Scenario = {
  name: "crowd",
  about: `${CROWDS.join(", ")} streams of 20 tokens per second, from the first to the last`,
  async run(rig) {
    const rows: Row[] = [];
    for (const lanes of CROWDS) {
      const pairs = await rig.pairs((server) => paceOf(rig, server, lanes));
      rows.push(
        row(`${lanes}: CPU ms per 1,000 tokens`, pairs, "wholeCpu"),
        row("  cores that the server uses", pairs, "cores"),
        row("  part of the pace that is kept", pairs, "pace"),
        row("  added latency p50, ms", pairs, "p50"),
        row("  added latency p99, ms", pairs, "p99"),
      );
    }
    return rows;
  },
};

type Growth = Pair<"early" | "late">;

const growthOf = (unit: string, pairs: readonly Growth[]): Row[] => [
  row(`${unit}, with little`, pairs, "early"),
  row(`${unit}, with much`, pairs, "late"),
  { figure: "with much less the request / with little", skein: pairs.map(beyondTheRequest) },
];

export const events: Scenario = {
  name: "events",
  about: "a token of a run of 20,000 compared with one of a run of 1,000",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const perToken = async (tokens: number, runs: number) => {
        const figures = await rig.load(server, { lanes: 4, runs, script: script({ tokens }) });
        return figures.cpuMs / (figures.tokens / 1000);
      };
      return { early: await perToken(1000, 10), late: await perToken(20_000, 1) };
    });
    return growthOf("CPU ms per 1,000 tokens", pairs);
  },
};

export const messages: Scenario = {
  name: "messages",
  about: "a run on a thread of 5,000 messages compared with one on a new thread",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const perRun = async (thread: object) => {
        const { cpuMs, runs } = await rig.load(server, {
          ...thread,
          runs: 10,
          script: script({ tokens: 5 }),
        });
        return cpuMs / runs;
      };
      const thread = { prefix: randomUUID(), turns: 1000 };
      await rig.load(server, { ...thread, runs: 50, earlier: 98, script: script({ tokens: 5 }) });
      return { early: await perRun({ turns: 1000 }), late: await perRun(thread) };
    });
    return growthOf("CPU ms per run", pairs);
  },
};

const LANES = 100;
const FEW = 10_000;
const MANY = 100_000;

export const manyThreads: Scenario = {
  name: "many-threads",
  about: "100,000 idle threads of two messages compared with 10,000, in a separate process",
  async run(rig) {
    const server = await rig.targets.skein.start(PROBED);
    const job = { lanes: LANES, script: script({ tokens: 1 }) };
    await rig.load(server, { ...job, runs: 4 });
    const before = await memoryOf(server);
    const few = await rig.load(server, { ...job, runs: FEW / LANES });
    const between = await memoryOf(server);
    for (let threads = 2 * FEW; threads < MANY; threads += FEW) {
      await rig.load(server, { ...job, runs: FEW / LANES });
    }
    const many = await rig.load(server, { ...job, runs: FEW / LANES });
    const after = await memoryOf(server);
    const list = await timeOf(() => attackerOn(server.port, {}).send("GET", "/threads"));
    await rig.children.stop(server);
    const kB = (bytes: number, threads: number) => [bytes / threads / 1024];
    return [
      {
        figure: "heap kB per thread",
        bare: kB(between.heap - before.heap, FEW),
        skein: kB(after.heap - before.heap, MANY),
      },
      {
        figure: "CPU ms per run on a new thread",
        bare: [few.cpuMs / few.runs],
        skein: [many.cpuMs / many.runs],
      },
      { figure: "GET /threads, ms", skein: [list] },
    ];
  },
};

const TOOLS = 200;

export const tools: Scenario = {
  name: "tools",
  about: `a run of an agent with ${TOOLS} callback tools (second column) compared with one without (first)`,
  async run(rig) {
    const server = await rig.targets.skein.start([], { agents: { many: { tools: ["extra_*"] } } });
    const client = attackerOn(server.port, {});
    for (let index = 0; index < TOOLS; index++)
      await client.send("POST", "/tools", JSON.stringify(toolOf(index)));
    const ask = (agent: string) => (index: number) => {
      const input = inputOf(script({ tokens: 5 }));
      return client.send("POST", `/threads/${agent}-${index}/runs`, JSON.stringify({ agent, input }));
    };
    for (const agent of ["bench", "many"]) await cpuPerRun(server, 50, ask(agent));
    const rows: Row = {
      figure: "CPU ms per run",
      bare: [await cpuPerRun(server, 200, ask("bench"))],
      skein: [await cpuPerRun(server, 200, ask("many"))],
    };
    await rig.children.stop(server);
    return [rows];
  },
};

const toolOf = (index: number) => ({
  name: `extra_${index}`,
  description: "Looks up an order of a customer, with its items, its price and where it is now.",
  parameters: {
    type: "object",
    properties: {
      order: { type: "string" },
      fields: { type: "array", items: { type: "string" } },
      limit: { type: "integer" },
    },
    required: ["order"],
  },
  callback_url: "https://example.com/",
});

const TENANTS = 10_000;

export const tenants: Scenario = {
  name: "tenants",
  about:
    "one run of each of 10,000 tenants: the last 1,000 (second column) compared with the second 1,000 (first)",
  async run(rig) {
    const server = await rig.targets.skein.start(PROBED, {
      env: { AUTH: "header", TRUSTED_PROXIES: "127.0.0.1" },
    });
    const body = JSON.stringify({ input: inputOf(script({ tokens: 1 })) });
    const ask = (from: number) => (index: number) => {
      const headers = {
        "x-skein-tenant": `t${from + index}`,
        "x-skein-user": "u",
        "x-skein-scopes": "read,run",
      };
      return attackerOn(server.port, headers).send("POST", "/threads/one/runs", body);
    };
    const part = TENANTS / 10;
    await cpuPerRun(server, part, ask(0));
    const before = await memoryOf(server);
    const early = await cpuPerRun(server, part, ask(part));
    await cpuPerRun(server, 7 * part, ask(2 * part));
    const late = await cpuPerRun(server, part, ask(9 * part));
    const after = await memoryOf(server);
    await rig.children.stop(server);
    return [
      { figure: "CPU ms per run", bare: [early], skein: [late] },
      { figure: "heap kB per tenant", skein: [(after.heap - before.heap) / (9 * part) / 1024] },
    ];
  },
};

const AT_ONCE = 8;

/** Throws if a response is not the stream of a successful run. */
async function cpuPerRun(
  server: Server,
  runs: number,
  ask: (index: number) => Promise<string>,
): Promise<number> {
  const before = cpuMsOf(server.pid);
  const queue = Array.from({ length: runs }, (_, index) => index).values();
  const one = async () => {
    for (const index of queue) {
      const answer = await ask(index);
      if (!answer.includes('"status":"success"')) throw new Error(`A run failed: ${answer.slice(0, 1000)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return (cpuMsOf(server.pid) - before) / runs;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
