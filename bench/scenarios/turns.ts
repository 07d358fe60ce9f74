import { randomUUID } from "node:crypto";
import { row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const EDGE = 20;
const TURNS = 200;
/** Several threads side by side: twenty turns alone are over before they can be measured. */
const THREADS = 4;

export const turns: Scenario = {
  name: "turns",
  about: "200 turns on one thread: the last twenty against the first twenty",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const thread = { prefix: randomUUID(), lanes: THREADS, turns: TURNS, script: script({ tokens: 50 }) };
      const early = await rig.load(server, { ...thread, runs: EDGE });
      await rig.load(server, { ...thread, runs: TURNS - 2 * EDGE });
      const late = await rig.load(server, { ...thread, runs: EDGE });
      return {
        growth: late.cpuMs / early.cpuMs,
        late: late.cpuMs / late.runs,
        bytes: Math.round((late.bytes / early.bytes) * 100) / 100,
      };
    });
    return [
      row("CPU of a late turn / an early one", pairs, "growth", { of: "skein", most: 1.5 }),
      row("CPU ms of a late turn", pairs, "late", { of: "ratio", most: 1.8 }),
      row("bytes of a late turn / an early one", pairs, "bytes", { of: "skein", most: 1 }),
    ];
  },
};
