// The benchmark itself. ../sandbox.ts describes and starts it.

import { setMaxListeners } from "node:events";
import { cpus } from "node:os";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { bulk } from "./bulk.ts";
import { openEngine } from "./engine.ts";
import { memory } from "./memory.ts";
import { operations } from "./operations.ts";
import { type Scenario, withStage } from "./stage.ts";
import { starts } from "./starts.ts";
import { heading, lineOf, section } from "./table.ts";

const SCENARIOS: Readonly<Record<string, readonly Scenario[]>> = {
  operations: [
    operations("busybox", "shells alone", 20),
    operations("debian", "with the helper for files", 80),
  ],
  bulk: [bulk("busybox"), bulk("debian")],
  starts: [starts],
  memory: [memory("busybox"), memory("debian")],
};
const NAMES = Object.keys(SCENARIOS);
const USAGE = `npm run bench:sandbox -- [options]

  --scenario <name>   only this one; may be given several times: ${NAMES.join(", ")}
  --rounds <n>        pairs per figure (default 3)`;

async function bench(args: readonly string[], signal: AbortSignal): Promise<void> {
  const { names, rounds } = readOptions(args);
  const began = performance.now();
  const engine = await openEngine();
  try {
    await withStage(engine, { rounds, signal }, async (stage) => {
      const { Version } = await engine.docker.version();
      console.log(
        `Node ${process.versions.node}, Docker ${Version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`,
      );
      console.log(`${rounds} rounds; medians, the ratio's over pairs\n`);
      console.log(heading());
      for (const scenario of names.flatMap((name) => SCENARIOS[name] ?? [])) {
        console.log(section(scenario.name));
        for await (const row of scenario.run(stage)) console.log(lineOf(row));
      }
    });
  } finally {
    await engine.close();
  }
  console.log(`\n${Math.round((performance.now() - began) / 1000)} s`);
}

const OPTIONS = {
  scenario: { type: "string", multiple: true },
  rounds: { type: "string", default: "3" },
} satisfies ParseArgsConfig["options"];

function readOptions(args: readonly string[]): { names: readonly string[]; rounds: number } {
  const { values } = parseArgs({ args: [...args], options: OPTIONS });
  const names = values.scenario ?? NAMES;
  const rounds = Number(values.rounds);
  if (names.some((name) => !NAMES.includes(name)) || !Number.isSafeInteger(rounds) || rounds < 1)
    throw new Error(`Invalid arguments.\n\n${USAGE}`);
  return { names, rounds };
}

const interrupt = new AbortController();
setMaxListeners(0, interrupt.signal); // each operation in progress has a listener
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(name, () => interrupt.abort(new Error(`interrupted by ${name}`)));

try {
  await bench(process.argv.slice(2), interrupt.signal);
} catch (error) {
  const { aborted, reason } = interrupt.signal;
  const failure = aborted ? reason : error;
  console.error(`bench: ${failure instanceof Error ? failure.message : failure}`);
  process.exitCode = aborted ? 130 : 1;
}
process.exit();
