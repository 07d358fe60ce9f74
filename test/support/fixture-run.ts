// A run of the tests in a folder of test/fixtures/, to see what a run says.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { NODE_ENV } from "./node.ts";

const VITEST = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
const FIXTURES = fileURLToPath(new URL("../fixtures", import.meta.url));

/** Resolves when it has ended, with what it wrote to standard output and to standard error. */
export async function runFixture(folder: string, env: Record<string, string> = {}) {
  const child = spawn(
    process.execPath,
    [VITEST, "run", "--config", `${FIXTURES}/${folder}/vitest.config.ts`],
    {
      env: { ...NODE_ENV, NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const [printed, complaints] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { exitCode: child.exitCode, printed, complaints };
}
