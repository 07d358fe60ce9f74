// `npm run bench`: this server beside a bare relay, in one run, and the budgets it keeps or breaks. A figure
// over its budget is reported, not an error; the exit code is 1 when something does not work.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Children, type Server, stepAside } from "./children.ts";
import { type Options, readOptions } from "./options.ts";
import { stopProfile } from "./probing.ts";
import { summaryOf } from "./profile.ts";
import { createRig, type Scenario } from "./rig.ts";
import { burst } from "./scenarios/burst.ts";
import { first } from "./scenarios/first.ts";
import { long } from "./scenarios/long.ts";
import { neighbours } from "./scenarios/neighbours.ts";
import { crowd, paced } from "./scenarios/paced.ts";
import { start } from "./scenarios/start.ts";
import { streams } from "./scenarios/streams.ts";
import { threads } from "./scenarios/threads.ts";
import { tool } from "./scenarios/tool.ts";
import { turns } from "./scenarios/turns.ts";
import { wire } from "./scenarios/wire.ts";
import { heading, lineOf, section } from "./table.ts";
import { bareRelay, skein } from "./targets.ts";

const USUAL: readonly Scenario[] = [burst, paced, first, tool, turns, streams, threads, start, wire];
const ALL: readonly Scenario[] = [...USUAL, crowd, long, neighbours];

async function bench(options: Options, children: Children, dir: string): Promise<void> {
  const { store, provider, rounds, profile, beside } = options;
  const here = (file: string) => join(import.meta.dirname, file);
  const loader = children.start({
    program: [process.execPath, here("load.ts")],
    place: "around",
    logFile: join(dir, "load.log"),
  });
  const around = {
    program: [process.execPath, here("provider.ts")],
    place: "around",
    logFile: join(dir, "provider.log"),
  } as const;
  const surroundings = { children, dir, providerPort: (await children.serve(around)).port };
  const relay = bareRelay(surroundings);
  const bare =
    beside === "bare"
      ? relay
      : typeof beside === "object"
        ? await skein(surroundings, store, provider, beside.folder)
        : await skein(surroundings, beside, provider);
  const targets = {
    bare,
    skein: options.target === "bare" ? relay : await skein(surroundings, store, provider),
  };
  const rig = createRig({ children, loader, targets, store, rounds, profiled: profile !== undefined });

  console.log(`Node ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim()}`);
  console.log(`store ${store}, provider ${provider}, ${rounds} rounds; medians, the ratio's over pairs\n`);
  console.log(
    heading(typeof beside === "object" ? "beside" : beside, options.target === "bare" ? "bare" : store),
  );
  for (const scenario of scenariosOf(options)) {
    console.log(section(scenario));
    for (const row of await scenario.run(rig)) console.log(lineOf(row));
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

const children = new Children();
const dir = mkdtempSync(join(tmpdir(), "skein-bench-"));
process.on("exit", () => {
  children.kill();
  rmSync(dir, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

try {
  const options = readOptions(
    process.argv.slice(2),
    ALL.map(({ name }) => name),
  );
  if (process.platform !== "linux") throw new Error("The benchmark reads /proc and so needs Linux.");
  stepAside();
  await bench(options, children, dir);
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}
process.exit();
