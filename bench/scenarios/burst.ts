import type { Server } from "../children.ts";
import { type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

export const burst: Scenario = {
  name: "burst",
  about: "64 concurrent runs of 200 tokens each, as fast as possible",
  async run(rig) {
    const single = await rig.pairs((server) => measure(rig, server, 1));
    const batched = await rig.pairs((server) => measure(rig, server, 8));
    return [
      row("CPU ms per 1,000 tokens", single, "cpu", "burst"),
      row("CPU ms per 1,000 tokens, 8 in a packet", batched, "cpu", "packed"),
      row("tokens per second", single, "speed"),
      row("first event p50, ms", single, "firstEvent", "first event in a burst"),
    ];
  },
};

async function measure(rig: Rig, server: Server, batch: number) {
  const load = { lanes: 64, runs: 5, script: script({ batch }) };
  const { cpuMs, tokens, ms, firstEventMs } = await rig.load(server, load);
  return { cpu: cpuMs / (tokens / 1000), speed: tokens / (ms / 1000), firstEvent: firstEventMs };
}
