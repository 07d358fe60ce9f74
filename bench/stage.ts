// The foundation of both benchmarks with a relay: a fake provider, a load generator, and the cleanup.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, Children, stepAside } from "./children.ts";
import type { Surroundings } from "./targets.ts";

export interface Stage extends Surroundings {
  readonly loader: Child;
}

/**
 * Runs the benchmark and ends this process. Ends all processes that it started, and removes the files on the stage. The
 * exit code is 1 if `bench` throws, and 0 unless `bench` has set another one.
 */
export async function onStage(bench: (stage: Stage) => Promise<void>): Promise<never> {
  const children = new Children();
  const dir = mkdtempSync(join(tmpdir(), "skein-bench-"));
  process.on("exit", () => {
    children.kill();
    rmSync(dir, { recursive: true, force: true });
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));
  try {
    if (process.platform !== "linux") throw new Error("The benchmark reads /proc and so needs Linux.");
    stepAside();
    await bench(await prepare(children, dir));
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
  process.exit();
}

async function prepare(children: Children, dir: string): Promise<Stage> {
  const around = (name: string) =>
    ({
      program: [process.execPath, join(import.meta.dirname, `${name}.ts`)],
      place: "around",
      logFile: join(dir, `${name}.log`),
    }) as const;
  const loader = children.start(around("load"));
  return { children, dir, loader, providerPort: (await children.serve(around("provider"))).port };
}
