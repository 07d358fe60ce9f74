// `npm run bench`: compares this server with a bare relay in one run, and checks the budgets. A figure over its budget
// is reported but is not an error. The exit code is 1 if something does not work.

import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { budgetOf } from "./budgets.ts";
import type { Server } from "./children.ts";
import { type Options, readOptions } from "./options.ts";
import { stopProfile } from "./probing.ts";
import { summaryOf } from "./profile.ts";
import { createRig, type Row, type Scenario } from "./rig.ts";
import { burst } from "./scenarios/burst.ts";
import { first } from "./scenarios/first.ts";
import { neighbours } from "./scenarios/neighbours.ts";
import { paced } from "./scenarios/paced.ts";
import { crowd, events, manyThreads, messages, tenants, tools } from "./scenarios/scale.ts";
import { schedules } from "./scenarios/schedules.ts";
import { start } from "./scenarios/start.ts";
import { streams } from "./scenarios/streams.ts";
import { threads } from "./scenarios/threads.ts";
import { tool } from "./scenarios/tool.ts";
import { turns } from "./scenarios/turns.ts";
import { wire } from "./scenarios/wire.ts";
import { wires } from "./scenarios/wires.ts";
import { workers } from "./scenarios/workers.ts";
import { onStage, type Stage } from "./stage.ts";
import { heading, lineOf, section } from "./table.ts";
import { aiSdk, bareRelay, skein } from "./targets.ts";

const USUAL: readonly Scenario[] = [burst, paced, first, tool, turns, streams, threads, start, wire, wires];
const ALL: readonly Scenario[] = [
  ...USUAL,
  ...[crowd, events, messages, manyThreads, tools, tenants],
  ...[neighbours, schedules, workers],
];

async function bench(options: Options, stage: Stage): Promise<void> {
  const { store, provider, rounds, profile, beside } = options;
  const relay = bareRelay(stage);
  const bare =
    beside === "bare"
      ? relay
      : typeof beside === "object"
        ? await skein(stage, store, provider, beside.folder)
        : await skein(stage, beside, provider);
  const measured = {
    bare: () => relay,
    "ai-sdk": () => aiSdk(stage),
    skein: () => skein(stage, store, provider),
  };
  const targets = { bare, skein: await measured[options.target]() };
  const rig = createRig({ ...stage, targets, store, rounds, profiled: profile !== undefined });

  console.log(`Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim()}`);
  console.log(`store ${store}, provider ${provider}, ${rounds} rounds; medians, the ratio's over pairs\n`);
  console.log(
    heading(
      typeof beside === "object" ? "beside" : beside,
      options.target === "skein" ? store : options.target,
    ),
  );
  /** The budgets apply to the comparison with the relay. */
  const limitOf = (row: Row) =>
    beside === "bare" && options.target === "skein" ? budgetOf(store, row) : undefined;
  for (const scenario of scenariosOf(options)) {
    console.log(section(scenario));
    for (const row of await scenario.run(rig)) console.log(lineOf(row, limitOf(row)));
  }
  if (profile !== undefined)
    for (const [name, server] of Object.entries(await rig.warm()))
      await report(name, server, join(profile, `${name}.cpuprofile`));
}

async function report(name: string, server: Server, file: string): Promise<void> {
  mkdirSync(dirname(file), { recursive: true });
  const profile = await stopProfile(server);
  writeFileSync(file, JSON.stringify(profile));
  console.log(`\n${name} (${file}):\n${summaryOf(profile)}`);
}

function scenariosOf({ scenarios }: Options): readonly Scenario[] {
  return scenarios ? ALL.filter(({ name }) => scenarios.includes(name)) : USUAL;
}

await onStage((stage) => {
  const names = ALL.map(({ name }) => name);
  return bench(readOptions(process.argv.slice(2), names), stage);
});
