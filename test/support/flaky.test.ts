import { expect, test } from "vitest";
import { runFixture } from "./fixture-run.ts";

test("a test that passes only when it is repeated is named at the end, with its first error", async () => {
  const { exitCode, printed, complaints } = await runFixture("flaky");
  expect(printed).toMatch(/Tests +3 passed/);
  expect(complaints).toContain(
    "*** FLAKY: test/fixtures/flaky/coin.ts > a coin > that falls on its right side when it is thrown again\n    throws: expected 1 to be 2",
  );
  expect(complaints).toContain("\n*** FLAKY: 1 passed only when repeated. Each is a defect.\n");
  expect(exitCode).toBe(0);
});

test.each([
  ["it fails the run", {}, 1],
  ["it does not while it is known", { KNOWN_UNTIL: "9999-12-31" }, 0],
  ["it does again after the last day", { KNOWN_UNTIL: "2001-01-01" }, 1],
])("in CI %s", async (_, env, exitCode) => {
  expect((await runFixture("flaky", { CI: "true", ...env })).exitCode).toBe(exitCode);
});
