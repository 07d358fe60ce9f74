// Runs tests in the copy of the program that it is a part of, as often as script/mutants.ts asks: one process does it,
// so that what a run of tests needs is loaded once. Only what was changed is compiled again.

import { createVitest, type TestCase } from "vitest/node";

export interface Order {
  readonly files: readonly string[];
  /** Only the tests whose names, with those of their suites, hold it. */
  readonly title?: string;
  /** Only those, by their whole names. */
  readonly names?: readonly string[];
  /** The file that has the edit. It has none any more when the next order comes. */
  readonly changed: string;
  /** Ends with the first that fails. */
  readonly bail: boolean;
}

export interface Told {
  readonly passed: number;
  readonly failed: readonly Failure[];
  /** Why files could not be loaded, or why no test was run. */
  readonly faults: readonly string[];
}

export interface Failure {
  readonly file: string;
  /** Whole: with those of its suites. */
  readonly name: string;
  readonly why: string;
}

/** What hangs with an edit fails, and is to do so soon. */
const PATIENCE = { testTimeout: 30_000, hookTimeout: 30_000, expect: { poll: { timeout: 10_000 } } };

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
  // What failed with the last edit would end this run at once.
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
      ...(passed > 0 ? [] : unhandledErrors.map(String)),
    ],
  };
}

function failureOf(test: TestCase): Failure {
  const [error] = test.result().errors ?? [];
  return { file: test.module.relativeModuleId, name: test.fullName, why: error?.message ?? "" };
}
