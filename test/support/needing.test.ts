import { expect, test } from "vitest";
import { runFixture } from "./fixture-run.ts";

/** A run of three tests; two need a program that no machine has. */
const run = (env: Record<string, string>) => runFixture("needing", env);

test("tests whose program is missing are skipped, and counted at the end", async () => {
  const { exitCode, printed, complaints } = await run({});
  expect(printed).toMatch(/Tests +1 passed \| 2 skipped/);
  expect(complaints).toContain("\n*** SKIPPED: 2 × tests that need a unicorn\n");
  expect(exitCode).toBe(0);
});

test("in CI they fail", async () => {
  const { exitCode, printed, complaints } = await run({ CI: "true" });
  expect(printed + complaints).toContain("The tests need a unicorn.");
  expect(exitCode).toBe(1);
});

test("in CI, a test that is skipped in another way fails the run and is named", async () => {
  const skipping = await run({ CI: "true", FIXTURE: "dragon.ts" });
  expect(skipping.complaints).toContain("\n*** SKIPPED: 1 × test/fixtures/needing/dragon.ts > a dragon\n");
  expect(skipping.exitCode).toBe(1);
  expect((await run({ CI: "true", FIXTURE: "dragon.ts", DRAGON: "here" })).exitCode).toBe(0);
});
