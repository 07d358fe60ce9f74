import { type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const DELAY_MS = 50;
const SPREAD_MS = 500;
/** So that all streams are live together for two and a half seconds. */
const TOKENS = (SPREAD_MS + 2500) / DELAY_MS;

export const paced: Scenario = {
  name: "paced",
  about: "200 streams of 20 tokens per second, while all of them are live",
  async run(rig) {
    const pairs = await measure(rig, 200);
    return [
      row("CPU ms per 1,000 tokens", pairs, "cpu", { of: "ratio", most: 1.15 }),
      row("added latency p50, ms", pairs, "p50"),
      row("added latency p99, ms", pairs, "p99"),
    ];
  },
};

export const crowd: Scenario = {
  name: "crowd",
  about: "500 streams of 20 tokens per second, while all of them are live",
  async run(rig) {
    const pairs = await measure(rig, 500);
    return [
      row("CPU ms per 1,000 tokens", pairs, "cpu"),
      row("added latency p50, ms", pairs, "p50"),
      row("added latency p99, ms", pairs, "p99", { of: "ratio", most: 1.3 }),
    ];
  },
};

function measure(rig: Rig, lanes: number) {
  const what = script({ tokens: TOKENS, delayMs: DELAY_MS, stamped: true });
  return rig.pairs(async (server) => {
    const { steady, latencyMs } = await rig.load(server, { lanes, spreadMs: SPREAD_MS, script: what });
    return { cpu: steady.cpuMs / (steady.tokens / 1000), ...latencyMs };
  });
}
