import { randomUUID } from "node:crypto";
import { row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const EDGE = 10;
const TURNS = 500;

export const long: Scenario = {
  name: "long",
  about: "500 turns on one thread: the last ten against the first ten",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const thread = { prefix: randomUUID(), turns: TURNS, script: script({ tokens: 50 }) };
      const early = await rig.load(server, { ...thread, runs: EDGE });
      await rig.load(server, { ...thread, runs: TURNS - 2 * EDGE });
      const late = await rig.load(server, { ...thread, runs: EDGE });
      return { cpu: late.cpuMs / early.cpuMs, wall: late.runMs / early.runMs };
    });
    return [
      row("CPU of a late turn / an early one", pairs, "cpu"),
      row("time of a late turn / an early one", pairs, "wall"),
    ];
  },
};
