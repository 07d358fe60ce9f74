// Names the tests that failed and passed only when they were repeated, with their first errors. In CI each fails the run.

import type { Reporter, TestCase } from "vitest/node";
import { KNOWN_FLAKY } from "./known-flaky.ts";

export const flaky = flakyBut(KNOWN_FLAKY);

/** The reporter. A test in `known` does not fail the run, up to and including its last day. */
export function flakyBut(known: typeof KNOWN_FLAKY): Reporter {
  const today = new Date().toISOString().slice(0, 10);
  const excused = new Set(known.filter(({ until }) => until >= today).map(({ test }) => test));
  return {
    onTestRunEnd(modules) {
      const tests = modules
        .flatMap((module) => [...module.children.allTests("passed")])
        .filter((test) => test.diagnostic()?.flaky);
      if (tests.length === 0) return;
      for (const test of tests)
        process.stderr.write(`\n*** FLAKY: ${nameOf(test)}\n    ${firstError(test)}\n`);
      process.stderr.write(`\n*** FLAKY: ${tests.length} passed only when repeated. Each is a defect.\n`);
      if (process.env.CI && tests.some((test) => !excused.has(nameOf(test)))) process.exitCode = 1;
    },
  };
}

const nameOf = (test: TestCase): string => `${test.module.relativeModuleId} > ${test.fullName}`;

const firstError = (test: TestCase): string =>
  (test.result().errors?.[0]?.message ?? "no error is known").replaceAll("\n", "\n    ");
