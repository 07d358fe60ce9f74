// The one way to skip a test: it needs something that not every machine has. Skipped tests are counted at the end of
// the run, by skipped.ts. In CI nothing is skipped: a missing program is an error.

import { describe, type TestFunction, test } from "vitest";

declare module "vitest" {
  interface TaskMeta {
    needs?: string;
  }
}

export interface Needing {
  describe(name: string, tests: () => void | Promise<void>): void;
  /** `timeout`: of a test that takes longer than others, in ms. */
  test(name: string, body: TestFunction, timeout?: number): void;
}

/** `describe` and `test` for tests that need `what`; the machine has it when `has` is truthy. */
export function needing(has: unknown, what: string): Needing {
  if (!has && process.env.CI)
    throw new Error(`The tests need ${what}. In CI no test is skipped: see script/test-tools.`);
  const options = has ? {} : { skip: true, meta: { needs: `tests that need ${what}` } };
  return {
    describe: (name, tests) => void describe(name, options, tests),
    test: (name, body, timeout) => void test(name, timeout ? { ...options, timeout } : options, body),
  };
}
