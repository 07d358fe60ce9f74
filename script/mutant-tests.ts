// Runs tests in its copy of the program each time script/mutants.ts asks it to. A single process does this, so shared
// modules load once. Only changed files are compiled again.

import { inspect } from "node:util";
import { createVitest, type TestCase } from "vitest/node";

export interface Order {
  readonly files: readonly string[];
  /** Runs only tests whose full names contain this text. */
  readonly title?: string;
  /** Runs only the tests with these full names. */
  readonly names?: readonly string[];
  /** The file with the edit. It is restored before the next order. */
  readonly changed: string;
  /** Stops at the first failure. */
  readonly bail: boolean;
}

export interface Told {
  readonly passed: number;
  readonly failed: readonly Failure[];
  /** The reasons why files could not be loaded, or why no test ran. */
  readonly faults: readonly string[];
}

export interface Failure {
  readonly file: string;
  /** The full name, including the suites. */
  readonly name: string;
  readonly why: string;
}

/** Short limits, because a test that hangs due to an edit counts as failed. */
const PATIENCE = { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 20_000 } } };

const vitest = await createVitest({
  ...PATIENCE,
  ...{ watch: false, project: ["plain", "alone"], retry: 0, reporters: [{}], maxWorkers: 2 },
});
let before = "";
process.on("message", (order: Order) => void run(order).then((told) => process.send?.(told)));
process.once("disconnect", () => process.exit());
process.send?.("ready");

async function run({ files, title, names, changed, bail }: Order): Promise<Told> {
  for (const path of [before, changed]) vitest.invalidateFile(path);
  before = changed;
  // A recorded failure of the previous edit would end this run at once.
  for (const map of [vitest.state.idMap, vitest.state.filesMap]) map.clear();
  for (const { config } of vitest.projects) config.bail = bail ? 1 : 0;
  const chosen = {
    ...(title === undefined ? {} : { testNamePattern: new RegExp(title) }),
    ...(names === undefined ? {} : { testNames: [...names] }),
  };
  const specifications = (await vitest.globTestSpecifications([...files])).map(({ project, moduleId }) =>
    project.createSpecification(moduleId, chosen),
  );
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
  const tests = testModules.flatMap((module) => [...module.children.allTests()]);
  const passed = tests.filter((test) => test.result().state === "passed").length;
  return {
    passed,
    failed: tests.filter((test) => test.result().state === "failed").map(failureOf),
    faults: [
      ...testModules.flatMap((module) => module.errors().map(({ message }) => message)),
      ...(passed > 0 ? [] : unhandledErrors.map((error) => inspect(error))),
    ],
  };
}

function failureOf(test: TestCase): Failure {
  const [error] = test.result().errors ?? [];
  return { file: test.module.relativeModuleId, name: test.fullName, why: error?.message ?? "" };
}
