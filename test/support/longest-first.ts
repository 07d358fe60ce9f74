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
    // A process that files share ends, with all that it has loaded, when a file of another kind is the next one: those come last.
    const sharing = order.filter(sharesProcess);
    const alone = order.filter((file) => !sharesProcess(file) && !hasEngine(file));
    const withEngine = order.filter(hasEngine);
    // Those with an engine mostly wait: they begin beside the others, one after the other.
    const distance = alone.length / withEngine.length;
    const place = (index: number) => Math.ceil(index * distance);
    const first = withEngine.flatMap((file, index) => [file, ...alone.slice(place(index), place(index + 1))]);
    return [...(withEngine.length > 0 ? first : alone), ...sharing];
  }
}

const isLong = ({ moduleId }: TestSpecification) => LONG.some((each) => each.test(moduleId));
const hasEngine = ({ project }: TestSpecification) => project.name === "docker";
const sharesProcess = ({ project }: TestSpecification) => !project.config.isolate;
