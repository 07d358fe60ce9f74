import { expect, test } from "vitest";
import { steadyClock } from "../../src/lib/steady-clock.ts";

test("a clock that is set back loses no time and continues from there", () => {
  let time = 1_000;
  const now = steadyClock(() => time);
  const seen = [1_500, 500, 700, 100, 100, 1_100].map((each) => {
    time = each;
    return now();
  });
  expect(seen).toEqual([1_500, 1_500, 1_700, 1_700, 1_700, 2_700]);
});
