import { randomUUID } from "node:crypto";
import { type Pair, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const EDGE = 10;
const TURNS = 500;
/** Several concurrent threads, because ten turns alone end before they can be measured. */
const THREADS = 4;

export const turns: Scenario = {
  name: "turns",
  about: "500 turns on one thread: the last ten compared with the first ten",
  async run(rig) {
    const pairs = await rig.pairs(async (server) => {
      const thread = { prefix: randomUUID(), lanes: THREADS, turns: TURNS, script: script({ tokens: 50 }) };
      const early = await rig.load(server, { ...thread, runs: EDGE });
      await rig.load(server, { ...thread, runs: TURNS - 2 * EDGE });
      const late = await rig.load(server, { ...thread, runs: EDGE });
      return {
        early: early.cpuMs / early.runs,
        late: late.cpuMs / late.runs,
        bytes: Math.round((late.bytes / early.bytes) * 100) / 100,
      };
    });
    return [
      row("CPU ms of an early turn", pairs, "early"),
      row("CPU ms of a late turn", pairs, "late"),
      {
        figure: "a late turn less the request / an early one",
        skein: pairs.map(beyondTheRequest),
        is: "late turn",
      },
      row("bytes of a late turn / an early one", pairs, "bytes", "late bytes"),
    ];
  },
};

/**
 * Returns the cost of a turn on a long thread relative to a short thread, without the cost of the longer request to the
 * provider. For that request, the relay only has to write and send.
 */
export function beyondTheRequest({ bare, skein }: Pair<"early" | "late">): number {
  return (skein.late - (bare.late - bare.early)) / skein.early;
}
