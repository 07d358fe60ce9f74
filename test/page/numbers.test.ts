import { expect, test } from "vitest";
import { costOf, duration } from "../../src/page/numbers.ts";

test.each([
  [0, "0 ms"],
  [999.4, "999 ms"],
  [999.6, "1.0 s"],
  [59_949, "59.9 s"],
  [59_960, "1 min 0 s"],
  [119_700, "2 min 0 s"],
  [185_000, "3 min 5 s"],
])("%d ms are %s", (ms, text) => expect(duration(ms)).toBe(text));

test("calls of a model without a price are not shown as free", () => {
  expect(costOf({ cost: 0, calls: 1 })).not.toContain("0");
  expect([costOf({ cost: 0, calls: 0 }), costOf({ cost: 1_500_000, calls: 1 })]).toEqual(["0.00", "1.50"]);
});
