import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { NODE_ENV } from "./node.ts";

const VITEST = fileURLToPath(new URL("../../node_modules/vitest/vitest.mjs", import.meta.url));
const CONFIG = fileURLToPath(new URL("../fixtures/needing/vitest.config.ts", import.meta.url));

/** A run of three tests; two need a program that no machine has. */
async function run(env: Record<string, string>) {
  const child = spawn(process.execPath, [VITEST, "run", "--config", CONFIG], {
    env: { ...NODE_ENV, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [printed, complaints] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { exitCode: child.exitCode, printed, complaints };
}

test("tests whose program is missing are skipped, and counted at the end", async () => {
  const { exitCode, printed, complaints } = await run({});
  expect(printed).toMatch(/Tests +1 passed \| 2 skipped/);
  expect(complaints).toContain("\n*** SKIPPED: 2 tests that need a unicorn\n");
  expect(exitCode).toBe(0);
});

test("in CI they fail", async () => {
  const { exitCode, printed, complaints } = await run({ CI: "true" });
  expect(printed + complaints).toContain("The tests need a unicorn.");
  expect(exitCode).toBe(1);
});
