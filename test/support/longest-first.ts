// In which order test files begin: what takes longest first, so that no process is left alone with it at the end.

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They take longer than their size tells, which is what decides where files have never been run. */
const LONG = [
  /permissions\/corpus\.docker/,
  /e2e\/(process|wires\/|wiring|replica|worker)/,
  /stores\/(memory|postgres|redis|sqlite)\.test/,
  /(chaos|cli|deploy|e2e\/pages|page)\//,
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const order = [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
    const withEngine = order.filter(hasEngine);
    const others = order.filter((file) => !hasEngine(file));
    // Few can have an engine at a time, and they mostly wait: they begin one after the other, in the first half.
    const distance = Math.ceil(others.length / (2 * withEngine.length));
    return withEngine
      .flatMap((file, index) => [file, ...others.slice(index * distance, (index + 1) * distance)])
      .concat(others.slice(withEngine.length * distance));
  }
}

const isLong = ({ moduleId }: TestSpecification) => LONG.some((each) => each.test(moduleId));
const hasEngine = ({ project }: TestSpecification) => project.name === "docker";
