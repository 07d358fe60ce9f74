import { expect, test } from "vitest";
import { atMostEvery } from "../../src/lib/at-most-every.ts";

test("frequent events are reported once per interval, with their count", () => {
  const told: [string, number][] = [];
  const hour = atMostEvery<string>(3_600_000, (what, count) => told.push([what, count]));
  for (const what of ["a", "b", "c"]) hour(what);
  expect(told).toEqual([["a", 1]]);
  const always = atMostEvery<string>(0, (what, count) => told.push([what, count]));
  for (const what of ["d", "e"]) always(what);
  expect(told.slice(1)).toEqual([
    ["d", 1],
    ["e", 1],
  ]);
});
