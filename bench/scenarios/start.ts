import { cpuMsOf } from "../meter.ts";
import { type Pair, type Rig, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";
import type { Target } from "../targets.ts";

const STARTS = 5;

export const start: Scenario = {
  name: "start",
  about: "from the start of the process to its first response, and to the end of its first run",
  async run(rig) {
    const { bare, skein } = rig.targets;
    const pairs: Pair<"accepted" | "ran" | "cpu">[] = [];
    for (let round = 0; round < STARTS; round++)
      pairs.push({ bare: await measure(rig, bare), skein: await measure(rig, skein) });
    return [
      row("first accepted request, ms", pairs, "accepted", "start"),
      row("first run ended, ms", pairs, "ran"),
      row("CPU ms up to there", pairs, "cpu"),
    ];
  },
};

async function measure(rig: Rig, target: Target) {
  const server = await target.start();
  const { runMs } = await rig.load(server, { script: script({ tokens: 5 }) });
  const cpu = cpuMsOf(server.pid);
  await rig.children.stop(server);
  return { accepted: server.startMs, ran: server.startMs + runMs, cpu };
}
