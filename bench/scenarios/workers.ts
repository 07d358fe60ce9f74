import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../children.ts";
import type { Job } from "../job.ts";
import { treeOf } from "../meter.ts";
import { type Pair, type Rig, type Row, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";
import { holdTo } from "../shares.ts";

const LANES = 32;
const POLL_MS = 50;
/**
 * The fraction of a processor for each process that executes runs. It is so low that the load, the provider and the
 * store never limit two processes.
 */
const SHARE = 0.15;

const LOADS = [
  { title: "runs of 20 tokens", job: { runs: 12, script: script({ tokens: 20 }) } },
  { title: "runs of 3 tool turns", job: { runs: 4, script: script({ tokens: 5, calls: 3 }) } },
] as const;

export const workers: Scenario = {
  name: "workers",
  about: `two workers (right) compared with one process (left), each limited to ${SHARE} of a processor`,
  async run(rig) {
    if (!SHARED.includes(rig.store)) throw new Error(`Workers need --store ${SHARED.join(" or ")}.`);
    const one = await startWith(rig, 1);
    const two = await startWith(rig, 2);
    const rows: Row[] = [];
    for (const { title, job } of LOADS) {
      const pairs: Pair<"rate" | "cpu" | "used">[] = [];
      for (let round = 0; round < rig.rounds; round++)
        pairs.push({ bare: await measure(rig, one, job), skein: await measure(rig, two, job) });
      rows.push(
        row(`${title}: a second`, pairs, "rate"),
        row("  CPU ms per run", pairs, "cpu"),
        row("  processors used", pairs, "used"),
      );
    }
    for (const server of [one, two]) await rig.children.stop(server);
    return rows;
  },
};

const SHARED: readonly string[] = ["redis", "postgres"];

/** Warms up the server, then limits it to its share. */
async function startWith(rig: Rig, count: number): Promise<Server> {
  const server = await rig.targets.skein.start([], { env: { WORKERS: String(count) } });
  while ((await serving(server)) < count) await sleep(POLL_MS);
  // With several processes, each must be warmed up.
  for (let round = 0; round <= count; round++)
    for (const { job } of LOADS) await measure(rig, server, { ...job, runs: 2 * job.runs });
  // With several processes, the first one only hands out connections.
  holdTo(SHARE, count === 1 ? [server.pid] : treeOf(server.pid).slice(1));
  return server;
}

async function serving({ port }: Server): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return page.match(/^skein_build_info/gm)?.length ?? 0;
}

async function measure(rig: Rig, server: Server, job: Pick<Job, "runs" | "script">) {
  const { runs, ms, cpuMs } = await rig.load(server, { lanes: LANES, ...job });
  return { rate: runs / (ms / 1000), cpu: cpuMs / runs, used: cpuMs / ms };
}
