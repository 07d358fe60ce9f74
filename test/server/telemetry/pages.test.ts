import { expect, test } from "vitest";
import { mergePages } from "../../../src/server/telemetry/pages.ts";

const page = (...lines: string[]) => `${lines.join("\n")}\n`;
const RUNS = ["# HELP runs Runs.", "# TYPE runs counter"];
const SLOTS = ["# HELP slots Slots.", "# TYPE slots gauge"];

test("the metrics of all workers form one page, with each metric once and every worker's samples", () => {
  const one = page(...RUNS, 'runs{worker="1"} 3', "", ...SLOTS, 'slots{worker="1"} 5');
  const two = page(...RUNS, 'runs{worker="2"} 4', 'runs{worker="2",agent="a"} 1', "", ...SLOTS);
  expect(mergePages([one, two])).toBe(
    page(
      ...[...RUNS, 'runs{worker="1"} 3', 'runs{worker="2"} 4', 'runs{worker="2",agent="a"} 1'],
      ...[...SLOTS, 'slots{worker="1"} 5'],
    ),
  );
});

test("an OpenMetrics page ends once, after the samples of all workers", () => {
  const pages = [1, 2].map((worker) => page(...RUNS, `runs{worker="${worker}"} 1`, "# EOF"));
  expect(mergePages(pages)).toBe(page(...RUNS, 'runs{worker="1"} 1', 'runs{worker="2"} 1', "# EOF"));
});
