import type { Server } from "../children.ts";
import type { Job } from "../job.ts";
import { type Pair, type Rig, type Row, row } from "../rig.ts";
import { script } from "../script.ts";

const CALLS = 10;
/** Uses several lanes, so runs of a store on disk do not wait for the disk one after another. */
const RUNS = { lanes: 8, runs: 6 };
const TOKENS = { lanes: 64, runs: 2 };

type Measure = "burst" | "packed" | "run" | "turn" | "waited";

/** Measures the CPU times of tokens, runs and tool turns, and how long a server waited for its processor meanwhile. */
export const measureShort = (rig: Rig): Promise<Pair<Measure>[]> =>
  rig.pairs(async (server) => {
    const loads = loadsOn(rig, server);
    const burst = await loads.cpuOf({ ...TOKENS, script: script({}) });
    const packed = await loads.cpuOf({ ...TOKENS, script: script({ batch: 8 }) });
    const run = await loads.cpuOf({ ...RUNS, script: script({ tokens: 5 }) });
    const within = await loads.cpuOf({ ...RUNS, script: script({ tokens: 5, calls: CALLS }) });
    return { burst, packed, run, turn: (within - run) / CALLS, waited: loads.waited() };
  });

export const rowsOf = (pairs: readonly Pair<Measure>[]): Row[] => [
  row("CPU ms per run of 200 tokens, 64 at once", pairs, "burst", "burst"),
  row("the same, 8 tokens in a packet", pairs, "packed", "packed"),
  row("CPU ms per run without tools", pairs, "run", "run"),
  row("CPU ms per tool turn", pairs, "turn", "tool turn"),
];

/** Returns for each pair how long its servers waited for their processor, relative to the CPU time that they used. */
export const waitedIn = (pairs: readonly Pair<Measure>[]): number[] =>
  pairs.map(({ bare, skein }) => Math.max(bare.waited, skein.waited));

function loadsOn(rig: Rig, server: Server) {
  let used = 0;
  let waited = 0;
  return {
    /** Returns the CPU time per run. */
    async cpuOf(job: Partial<Job>): Promise<number> {
      const figures = await rig.load(server, job);
      used += figures.cpuMs;
      waited += figures.waitedMs;
      return figures.cpuMs / figures.runs;
    },
    waited: () => waited / used,
  };
}
