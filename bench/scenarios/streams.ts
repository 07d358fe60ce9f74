import { setTimeout as sleep } from "node:timers/promises";
import { memoryOf, PROBED } from "../probing.ts";
import { type Pair, type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";
import type { Target } from "../targets.ts";

const ROUNDS = 5;
const STREAMS = 500;
const SPREAD_MS = 1500;
const LIVE_MS = 1000;
const DELAY_MS = 50;

export const streams: Scenario = {
  name: "streams",
  about: "memory of 500 live streams after a full collection, in new processes",
  async run(rig) {
    const { bare, skein } = rig.targets;
    const pairs: Pair<"rss" | "heap">[] = [];
    for (let round = 0; round < ROUNDS; round++)
      pairs.push({ bare: await measure(rig, bare), skein: await measure(rig, skein) });
    return [
      row("RSS kB per live stream", pairs, "rss", "stream"),
      row("heap kB per live stream", pairs, "heap"),
    ];
  },
};

async function measure(rig: Rig, target: Target) {
  const server = await target.start(PROBED);
  await rig.load(server, { runs: 100, script: script({ tokens: 20 }) });
  const before = await memoryOf(server);
  const tokens = (SPREAD_MS + 2 * LIVE_MS) / DELAY_MS;
  const job = { lanes: STREAMS, spreadMs: SPREAD_MS, script: script({ tokens, delayMs: DELAY_MS }) };
  const [during] = await Promise.all([
    sleep(SPREAD_MS + LIVE_MS).then(() => memoryOf(server)),
    rig.load(server, job),
  ]);
  await rig.children.stop(server);
  return {
    rss: (during.rss - before.rss) / STREAMS / 1024,
    heap: (during.heap - before.heap) / STREAMS / 1024,
  };
}
