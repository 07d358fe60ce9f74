import type { Server } from "../children.ts";
import { type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const DELAY_MS = 50;
const LIVE_MS = 2500;
/** Spreads the starts, because this scenario does not measure the cost of starting a stream. */
const SPREAD_MS_PER_STREAM = 2.5;

export const paced: Scenario = {
  name: "paced",
  about: "200 streams of 20 tokens per second, while all of them are live",
  async run(rig) {
    const pairs = await rig.pairs((server) => paceOf(rig, server, 200));
    return [
      row("CPU ms per 1,000 tokens", pairs, "cpu", "paced"),
      row("added latency p50, ms", pairs, "p50", "paced p50"),
      row("added latency p99, ms", pairs, "p99", "paced p99"),
    ];
  },
};

/** All `lanes` are live together for two and a half seconds if the server keeps up. */
export async function paceOf(rig: Rig, server: Server, lanes: number) {
  const spreadMs = lanes * SPREAD_MS_PER_STREAM;
  const tokens = Math.ceil((spreadMs + LIVE_MS) / DELAY_MS);
  const { steady, latencyMs, ...all } = await rig.load(server, {
    ...{ lanes, spreadMs },
    script: script({ tokens, delayMs: DELAY_MS, stamped: true }),
  });
  return {
    cpu: steady.cpuMs / (steady.tokens / 1000),
    ...latencyMs,
    wholeCpu: all.cpuMs / (all.tokens / 1000),
    cores: all.cpuMs / all.ms,
    pace: (spreadMs + tokens * DELAY_MS) / all.ms,
  };
}
