// Says at the end of a run which tests failed and passed only when they were repeated, and why they failed.

import type { Reporter, TestCase } from "vitest/node";

export const flaky: Reporter = {
  onTestRunEnd(modules) {
    const tests = modules
      .flatMap((module) => [...module.children.allTests("passed")])
      .filter((test) => test.diagnostic()?.flaky);
    for (const test of tests) process.stderr.write(`\n*** FLAKY: ${lineOf(test)}\n`);
    if (tests.length > 0)
      process.stderr.write(`\n*** FLAKY: ${tests.length} passed only when repeated. Each is a defect.\n`);
  },
};

/** Where it is, and its first error. */
function lineOf(test: TestCase): string {
  const [error] = test.result().errors ?? [];
  const cause = error?.message ?? "no error is known";
  return `${test.module.relativeModuleId} > ${test.fullName}\n    ${cause.replaceAll("\n", "\n    ")}`;
}
