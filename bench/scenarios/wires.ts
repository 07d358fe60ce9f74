import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../children.ts";
import { FRONTS, type FrontName } from "../fronts.ts";
import { memoryOf, PROBED } from "../probing.ts";
import { type Pair, type Rig, type Row, row, type Scenario } from "../rig.ts";
import { script } from "../script.ts";

const WIRES = FRONTS.filter((front) => front !== "native");
/** Long enough that a run's costs other than its tokens hardly count. */
const LOAD = { lanes: 32, runs: 2, script: script({ tokens: 1000 }) };

export const wires: Scenario = {
  name: "wires",
  about: "32 concurrent runs of 1,000 tokens each, read natively and over each wire",
  async run(rig) {
    const { bare, skein } = await rig.warm();
    for (const front of WIRES) await rig.load(skein, { lanes: 32, runs: 4, front });
    const pairs = await rig.pairs((server) => (server === bare ? relayed(rig, server) : read(rig, server)));
    return [
      ...FRONTS.map((front) => row(`CPU ms per 1,000 tokens, ${front}`, pairs, front)),
      ...WIRES.map((front) => more(front, pairs)),
      ...(await memory(rig)),
    ];
  },
};

type PerFront = Record<FrontName, number>;

const cpuOf = async (rig: Rig, server: Server, front: FrontName) => {
  const { cpuMs, tokens } = await rig.load(server, { ...LOAD, front });
  return cpuMs / (tokens / 1000);
};

async function read(rig: Rig, server: Server): Promise<PerFront> {
  const figures: [FrontName, number][] = [];
  for (const front of FRONTS) figures.push([front, await cpuOf(rig, server, front)]);
  return Object.fromEntries(figures) as PerFront;
}

/** The relay can be read in only one way. */
async function relayed(rig: Rig, server: Server): Promise<PerFront> {
  const figure = await cpuOf(rig, server, "native");
  return Object.fromEntries(FRONTS.map((front) => [front, figure])) as PerFront;
}

/** Returns the additional cost of a wire over the native stream, relative to the relay. */
const more = (front: FrontName, pairs: readonly Pair<FrontName>[]): Row => ({
  figure: `  more than natively, ${front}`,
  skein: pairs.map(({ skein }) => skein[front] - skein.native),
  ratio: pairs.map(({ bare, skein }) => (skein[front] - skein.native) / bare[front]),
  is: "wire",
});

const STREAMS = 300;
const SPREAD_MS = 1500;
const LIVE_MS = 1000;
const DELAY_MS = 50;
const LIVE = { lanes: STREAMS, spreadMs: SPREAD_MS };

/** Measures the memory of live streams over each wire, in a separate process. */
async function memory(rig: Rig): Promise<Row[]> {
  const rows: Row[] = [];
  for (const front of FRONTS) {
    const server = await rig.targets.skein.start(PROBED);
    await rig.load(server, { lanes: 64, runs: 4, front });
    const before = await memoryOf(server);
    const tokens = (SPREAD_MS + 2 * LIVE_MS) / DELAY_MS;
    const job = { ...LIVE, script: script({ tokens, delayMs: DELAY_MS }), front };
    const [during] = await Promise.all([
      sleep(SPREAD_MS + LIVE_MS).then(() => memoryOf(server)),
      rig.load(server, job),
    ]);
    await rig.children.stop(server);
    rows.push({
      figure: `heap kB per live stream, ${front}`,
      skein: [(during.heap - before.heap) / STREAMS / 1024],
    });
  }
  return rows;
}
