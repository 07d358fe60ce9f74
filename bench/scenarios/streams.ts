import { setTimeout as sleep } from "node:timers/promises";
import { memoryOf, PROBED } from "../probing.ts";
import type { Rig, Row, Scenario } from "../rig.ts";
import { script } from "../script.ts";
import type { Target } from "../targets.ts";

const STREAMS = 500;
const SPREAD_MS = 1500;
const LIVE_MS = 1500;
const DELAY_MS = 50;

export const streams: Scenario = {
  name: "streams",
  about: "what 500 live streams hold, after a full collection",
  async run(rig) {
    const bare = await measure(rig, rig.targets.bare);
    const skein = await measure(rig, rig.targets.skein);
    const line = (figure: string, key: "rss" | "heap", budget: Pick<Row, "budget">): Row => ({
      ...{ figure, bare: [bare[key]], skein: [skein[key]], ratio: [skein[key] / bare[key]] },
      ...budget,
    });
    return [
      line("RSS kB per live stream", "rss", { budget: { of: "skein", most: 110 } }),
      line("heap kB per live stream", "heap", {}),
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
