import { memoryOf, PROBED } from "../probing.ts";
import { type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";
import type { Target } from "../targets.ts";

const LANES = 100;
const THREADS = 10_000;

export const threads: Scenario = {
  name: "threads",
  about: "memory of 10,000 idle threads of ten messages after a full collection",
  async run(rig) {
    const { bare, skein } = rig.targets;
    const pairs = [{ bare: await measure(rig, bare), skein: await measure(rig, skein) }];
    return [row("heap MB per 10,000 idle threads", pairs, "heap", "threads")];
  },
};

/** One run per thread, because ten messages from five turns would take five times as long to measure. */
async function measure(rig: Rig, target: Target) {
  const server = await target.start(PROBED);
  const job = { lanes: LANES, earlier: 8, script: script({ tokens: 20 }) };
  await rig.load(server, { ...job, runs: 2 });
  const before = await memoryOf(server);
  await rig.load(server, { ...job, runs: THREADS / LANES });
  const after = await memoryOf(server);
  await rig.children.stop(server);
  return { heap: (after.heap - before.heap) / 1024 / 1024 };
}
