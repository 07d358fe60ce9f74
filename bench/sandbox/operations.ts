import { median } from "../stats.ts";
import type { ImageName } from "./engine.ts";
import { fasterOf, type Pair, pairs, timed } from "./pairs.ts";
import type { Scenario, Stage, Ways } from "./stage.ts";
import { atLeast, atMost, middle, type Row, spread } from "./table.ts";
import type { Way } from "./ways.ts";

const BYTES = Buffer.alloc(4096, "abcdefg\n");
const ENTRIES = 20;
const LANES = 8;
/** The number of operations in one round. An exec takes a hundred times as long. */
const TIMES = { plain: 4, skein: 50 };
const TIMES_AT_ONCE = { plain: 1, skein: 20 };
const AT_ONCE_ROUNDS = 2;
const SLEEP_SECONDS = 0.2;

interface Operation {
  readonly figure: string;
  /** The expected result. */
  readonly gives: number;
  perform(way: Way, lane: number): Promise<number>;
}

const READ: Operation = { figure: "read 4 KiB", gives: BYTES.length, perform: (way) => way.read("file") };
const OPERATIONS: readonly Operation[] = [
  READ,
  {
    ...{ figure: "write 4 KiB", gives: BYTES.length },
    perform: (way, lane) => way.write(`written-${lane}`, BYTES),
  },
  { figure: `list ${ENTRIES} entries`, gives: ENTRIES, perform: (way) => way.list("folder") },
  { figure: "execute `true`", gives: 0, perform: (way) => way.run("true") },
];

/** Measures operations one at a time, and eight at once. `readBudget` is the factor by which a read must be faster. */
export const operations = (image: ImageName, about: string, readBudget: number): Scenario => ({
  name: `${image}: ${about}`,
  async *run(stage) {
    const ways = await stage.sandbox(image);
    await prepare(ways);
    for (const operation of OPERATIONS) yield await oneByOne(stage, ways, operation, readBudget);
    for (const operation of OPERATIONS) yield await atOnce(ways, operation);
    yield await sideBySide(ways);
  },
});

/** Starts as many shells as the measurement needs, and gets all code compiled. */
async function prepare({ plain, skein }: Ways): Promise<void> {
  await skein.write("file", BYTES);
  for (let entry = 0; entry < ENTRIES; entry++) await skein.write(`folder/entry-${entry}`, BYTES);
  for (const operation of OPERATIONS) {
    await load(operation, plain, 1, 1);
    await load(operation, skein, LANES, 10);
  }
}

async function oneByOne(
  { rounds }: Stage,
  { plain, skein }: Ways,
  operation: Operation,
  readBudget: number,
): Promise<Row> {
  const measured = await pairs(
    rounds,
    () => load(operation, plain, 1, TIMES.plain),
    () => load(operation, skein, 1, TIMES.skein),
  );
  const faster = fasterOf(measured, ({ ms }) => median(ms));
  return {
    figure: `${operation.figure}: p50 · p99, ms`,
    plain: spread(all(measured, "plain")),
    skein: spread(all(measured, "skein")),
    faster,
    ...(operation === READ ? { budget: atLeast(readBudget, faster) } : {}),
  };
}

async function atOnce({ plain, skein }: Ways, operation: Operation): Promise<Row> {
  const measured = await pairs(
    AT_ONCE_ROUNDS,
    () => load(operation, plain, LANES, TIMES_AT_ONCE.plain),
    () => load(operation, skein, LANES, TIMES_AT_ONCE.skein),
  );
  const cell = (way: keyof Ways) =>
    `${middle(measured.map((pair) => pair[way].perSecond))} · ${middle(all(measured, way))}`;
  return {
    figure: `${operation.figure}, eight at once: a second · p50, ms`,
    ...{ plain: cell("plain"), skein: cell("skein") },
    faster: fasterOf(measured, ({ perSecond }) => 1 / perSecond),
  };
}

/** Commands that only take time need no processor, so eight should take as long as one. */
async function sideBySide({ plain, skein }: Ways): Promise<Row> {
  const nap: Operation = {
    ...{ figure: "sleep", gives: 0 },
    perform: (way) => way.run(`sleep ${SLEEP_SECONDS}`),
  };
  const ratio = async (way: Way) => {
    const one = await load(nap, way, 1, 1);
    const eight = await load(nap, way, LANES, 1);
    return (LANES * one.perSecond) / eight.perSecond;
  };
  const measured = await pairs(
    AT_ONCE_ROUNDS,
    () => ratio(plain),
    () => ratio(skein),
  );
  const values = measured.map((pair) => pair.skein);
  return {
    figure: `eight \`sleep ${SLEEP_SECONDS}\` at once, in times of one alone`,
    plain: middle(measured.map((pair) => pair.plain)),
    skein: middle(values),
    budget: atMost(2, values),
  };
}

interface Load {
  readonly ms: readonly number[];
  readonly perSecond: number;
}

/** Each lane performs the operation `times` times in sequence, and all lanes run concurrently. */
async function load({ perform, gives }: Operation, way: Way, lanes: number, times: number): Promise<Load> {
  const began = performance.now();
  const inLane = async (lane: number) => {
    const ms: number[] = [];
    while (ms.length < times) ms.push(await timed(() => perform(way, lane), gives));
    return ms;
  };
  const ms = (await Promise.all(Array.from({ length: lanes }, (_, lane) => inLane(lane)))).flat();
  return { ms, perSecond: ms.length / ((performance.now() - began) / 1000) };
}

const all = (measured: readonly Pair<Load>[], way: keyof Ways) => measured.flatMap((pair) => pair[way].ms);
