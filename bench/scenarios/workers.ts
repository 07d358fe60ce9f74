import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../children.ts";
import { treeOf } from "../meter.ts";
import { type Pair, type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const ROUNDS = 4;
const LANES = 64;
const POLL_MS = 50;

/** Read before this process was pinned. */
const PROCESSORS = availableParallelism();

export const workers: Scenario = {
  name: "workers",
  about:
    "two workers (right) beside one process (left); on two processors the load takes its part of the second",
  async run(rig) {
    if (rig.store !== "redis") throw new Error("Workers need --store redis.");
    const one = await startWith(rig, 1);
    const two = await startWith(rig, 2);
    const pairs: Pair<"rate" | "cpu">[] = [];
    for (let round = 0; round < ROUNDS; round++)
      pairs.push({ bare: await measure(rig, one), skein: await measure(rig, two) });
    for (const server of [one, two]) await rig.children.stop(server);
    return [row("runs per second", pairs, "rate"), row("CPU ms per run", pairs, "cpu")];
  },
};

/** Warm, and on all processors. */
async function startWith(rig: Rig, count: number): Promise<Server> {
  const server = await rig.targets.skein.start([], { env: { WORKERS: String(count) } });
  while ((await serving(server)) < count) await sleep(POLL_MS);
  for (const pid of treeOf(server.pid)) spawnSync("taskset", ["-apc", `0-${PROCESSORS - 1}`, String(pid)]);
  // Each of several processes has to be warm.
  for (let round = 0; round <= count; round++) await measure(rig, server);
  return server;
}

async function serving({ port }: Server): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return page.match(/^skein_build_info/gm)?.length ?? 0;
}

async function measure(rig: Rig, server: Server) {
  const { runs, ms, cpuMs } = await rig.load(server, {
    lanes: LANES,
    runs: 20,
    script: script({ tokens: 20 }),
  });
  return { rate: runs / (ms / 1000), cpu: cpuMs / runs };
}
