// `npm run bench:short`: compares CPU times, relative to the relay, with the ratios in figures.json. Exits with 1 if a
// ratio jumped, or if something does not work. `--record` writes the measured ratios into that file.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { comparisonOf, JUMP, type Ratios, readRecorded, writeRecorded } from "./recorded.ts";
import { createRig, type Row } from "./rig.ts";
import { measureShort, rowsOf, waitedIn } from "./scenarios/short.ts";
import { onStage, type Stage } from "./stage.ts";
import { median } from "./stats.ts";
import { heading, lineOf } from "./table.ts";
import { bareRelay, type Store, skein } from "./targets.ts";

/** The stores that need no additional software. */
const STORES = ["memory", "sqlite"] as const satisfies readonly Store[];
const ROUNDS = 9;
/** The limit per store. A busy machine measures fewer pairs instead of taking longer. */
const ENOUGH_MS = 60_000;
/** The load average over the last minute below which a machine counts as idle. */
const IDLE_LOAD = 0.7;

interface Measurement {
  readonly rows: readonly Row[];
  /** One value per pair. */
  readonly waited: readonly number[];
}

async function measure(stage: Stage, store: Store): Promise<Measurement> {
  console.log(`\n${heading("bare", store, "recorded")}`);
  const targets = { bare: bareRelay(stage), skein: await skein(stage, store, "openai") };
  const rig = createRig({ ...stage, targets, store, rounds: ROUNDS, enoughMs: ENOUGH_MS, profiled: false });
  const pairs = await measureShort(rig);
  for (const server of Object.values(await rig.warm())) await rig.children.stop(server);
  return { rows: rowsOf(pairs), waited: waitedIn(pairs) };
}

/** Prints the measurements. Returns whether a ratio jumped. */
function compare({ rows, waited }: Measurement, recorded: Ratios): boolean {
  const verdicts = rows.map((row) => {
    const figure = row.is && recorded[row.is];
    const measured = waited.map((each, n) => ({ ratio: row.ratio?.[n] ?? Number.NaN, waited: each }));
    const verdict = comparisonOf(measured, figure);
    console.log(lineOf(row, { text: figure ? `${figure}×` : "–", verdict }));
    return verdict;
  });
  const times = waited.map((each) => each.toFixed(1)).join(", ");
  if (verdicts.includes("unclear"))
    console.log(`  time spent waiting for the processor, relative to CPU time: ${times}`);
  return verdicts.includes("jumped");
}

async function hasJumped(stage: Stage, store: Store, recorded: Ratios): Promise<boolean> {
  if (!compare(await measure(stage, store), recorded)) return false;
  console.log("\nMeasuring again, because other work may have caused this.");
  return compare(await measure(stage, store), recorded);
}

async function check(stage: Stage): Promise<void> {
  const recorded = readRecorded();
  const jumped: Store[] = [];
  for (const store of STORES) if (await hasJumped(stage, store, recorded[store] ?? {})) jumped.push(store);
  if (jumped.length === 0) return;
  throw new Error(
    `On ${jumped.join(" and ")} a ratio is more than ${JUMP} times the recorded one. Make it smaller, or run \`npm run bench:short -- --record\` and say in the commit what it pays for.`,
  );
}

async function record(stage: Stage): Promise<void> {
  const [load = 0] = loadavg();
  if (load > IDLE_LOAD)
    throw new Error(
      `The load of this machine is ${load.toFixed(1)}. Figures are recorded at ${IDLE_LOAD} or less: wait until it is idle.`,
    );
  const measured: [Store, Ratios][] = [];
  for (const store of STORES) {
    const { rows } = await measure(stage, store);
    for (const row of rows) console.log(lineOf(row));
    const ratios = rows.map(({ is, ratio = [] }) => [is, Number(median(ratio).toFixed(2))]);
    measured.push([store, Object.fromEntries(ratios)]);
  }
  writeRecorded(Object.fromEntries(measured));
}

const { values } = parseArgs({ options: { record: { type: "boolean", default: false } } });
await onStage(values.record ? record : check);
