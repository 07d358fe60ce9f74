// Names the tests that were skipped, those that need a program by the program. In CI each of them fails the run, and so does a file without a test.

import type { Reporter, TestCase, TestModule, TestSuite, Vitest } from "vitest/node";
import type {} from "./needing.ts";

let vitest: Vitest | undefined;

export const skipped: Reporter = {
  onInit(its) {
    vitest = its;
  },

  onTestRunEnd(modules) {
    // A run of chosen tests skips the others.
    if (vitest?.config.testNamePattern) return;
    const counts = new Map<string, number>();
    for (const module of modules)
      for (const test of module.children.allTests("skipped")) {
        const which = needOf(test) ?? `${module.relativeModuleId} > ${test.fullName}`;
        counts.set(which, (counts.get(which) ?? 0) + 1);
      }
    for (const [which, count] of counts) process.stderr.write(`\n*** SKIPPED: ${count} × ${which}\n`);
    if (process.env.CI && counts.size > 0) process.exitCode = 1;
  },
};

/** As `needing.ts` notes it: `tests that need a program`. */
const needOf = (task: TestCase | TestSuite | TestModule): string | undefined =>
  task.meta().needs ?? (task.type === "module" ? undefined : needOf(task.parent));
