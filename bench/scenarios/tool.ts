import { row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const CALLS = 10;
const RUNS = 100;
const TOKENS = 5;

export const tool: Scenario = {
  name: "tool",
  about: "one turn of the tool loop: ten turns minus the same run without them, one run at a time",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const without = await rig.load(server, { runs: RUNS, script: script({ tokens: TOKENS }) });
      const within = await rig.load(server, { runs: RUNS, script: script({ tokens: TOKENS, calls: CALLS }) });
      return {
        wall: (within.runMs - without.runMs) / CALLS,
        cpu: (within.cpuMs - without.cpuMs) / RUNS / CALLS,
        run: without.cpuMs / RUNS,
      };
    });
    return [
      row("ms per tool turn", pairs, "wall"),
      row("CPU ms per tool turn", pairs, "cpu", "tool turn"),
      row("CPU ms per run without tools", pairs, "run", "run"),
    ];
  },
};
