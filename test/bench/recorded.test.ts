import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { comparisonOf, readRecorded } from "../../bench/recorded.ts";

const calm = (ratios: readonly number[]) => ratios.map((ratio) => ({ ratio, waited: 0.1 }));
const busy = (ratios: readonly number[]) => ratios.map((ratio) => ({ ratio, waited: 1.1 }));

describe("a ratio, compared with the recorded one", () => {
  test("can be a quarter larger", () => {
    expect(comparisonOf(calm([2.4, 2.5, 2.3, 2.5, 2.2]), 2)).toBe("kept");
    expect(comparisonOf(calm([0.5, 0.6, 0.4, 0.5, 0.5]), 2)).toBe("kept");
  });

  test("has regressed if it is larger than that", () => {
    expect(comparisonOf(calm([2.6, 2.7, 2.6, 2.6, 2.8]), 2)).toBe("jumped");
  });

  test("is not affected by a single disturbed pair", () => {
    expect(comparisonOf(calm([2, 2.1, 2, 40, 1.9]), 2)).toBe("kept");
    expect(comparisonOf(calm([4, 4.1, 4, 0.3, 4.2]), 2)).toBe("jumped");
  });

  test("has no verdict if its pairs differ too much", () => {
    expect(comparisonOf(calm([1, 2, 3.1, 5, 9]), 2)).toBe("unclear");
    expect(comparisonOf(calm([1, 1, 1, 5, 9]), 2)).toBe("unclear");
  });

  test("has no verdict if the servers waited for their processor longer than they ran", () => {
    expect(comparisonOf(busy([5, 5, 5, 5, 5]), 2)).toBe("unclear");
    expect(comparisonOf([...busy([9, 9]), ...calm([2, 2, 2, 2, 2])], 2)).toBe("kept");
  });

  test("has no verdict if too little was measured or nothing is recorded", () => {
    expect(comparisonOf(calm([9, 9, 9, 9]), 2)).toBe("unclear");
    expect(comparisonOf(calm(Array(5).fill(Number.NaN)), 2)).toBe("unclear");
    expect(comparisonOf(calm([1, 1, 1, 1, 1]), undefined)).toBe("unclear");
  });
});

test("ratios are recorded for each store that the short bench measures", () => {
  const figures = Object.entries(readRecorded()).map(([store, ratios]) => [store, Object.keys(ratios)]);
  const measured = ["burst", "packed", "run", "tool turn"];
  expect(Object.fromEntries(figures)).toEqual({ memory: measured, sqlite: measured });
});

test("docs/concepts/performance.md contains the recorded ratios", () => {
  const docs = readFileSync("docs/concepts/performance.md", "utf8");
  for (const [store, ratios] of Object.entries(readRecorded())) {
    const row = [store, ...Object.values(ratios).map((ratio) => `${ratio}×`)].join(" | ");
    expect(docs).toContain(`| ${row} |`);
  }
});
