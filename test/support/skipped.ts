// Says at the end of a run how many tests were skipped, and why.

import type { Reporter, TestCase, TestModule, TestSuite } from "vitest/node";
import type {} from "./needing.ts";

export const skipped: Reporter = {
  onTestRunEnd(modules) {
    const counts = new Map<string, number>();
    for (const module of modules)
      for (const test of module.children.allTests("skipped")) {
        const what = needOf(test);
        if (what) counts.set(what, (counts.get(what) ?? 0) + 1);
      }
    for (const [what, count] of counts)
      process.stderr.write(`\n*** SKIPPED: ${count} tests that need ${what}\n`);
  },
};

const needOf = (task: TestCase | TestSuite | TestModule): string | undefined =>
  task.meta().needs ?? (task.type === "module" ? undefined : needOf(task.parent));
