import { expect, test } from "vitest";
import { Duration, Lifetime, Seconds } from "../../src/lib/units.ts";

test.each([
  ["250ms", 250],
  ["10s", 10_000],
  ["1.5s", 1500],
  ["15m", 900_000],
  ["1h", 3_600_000],
  ["7d", 604_800_000],
  ["30", 30_000],
  [30, 30_000],
  [0, 0],
  ["0s", 0],
])("reads %j as %d ms", (written, ms) => expect(Duration.parse(written)).toBe(ms));

test.each([
  "",
  "s",
  "10 minutes",
  "-1s",
  -1,
  "1e3",
  "10S",
  "25d",
  Number.NaN,
  Number.POSITIVE_INFINITY,
  null,
])("refuses %j", (written) => expect(Duration.safeParse(written).success).toBe(false));

test.each([
  ["1h", 3_600_000],
  [30, 30_000],
  ["3650d", 315_360_000_000],
  ["forever", Number.POSITIVE_INFINITY],
])("reads %j as a lifetime of %d ms", (written, ms) => expect(Lifetime.parse(written)).toBe(ms));

test.each(["never", "", 0, "0s", -1, "36501d", null])("refuses the lifetime %j", (written) =>
  expect(Lifetime.safeParse(written).success).toBe(false),
);

test.each([
  ["10m", 600],
  ["90s", 90],
  [0.5, 0.5],
  ["250ms", 0.25],
  ["600", 600],
])("reads %j as %d seconds, which is written the same way", (written, seconds) => {
  const read = Seconds(3600).parse(written);
  expect([read, Seconds(3600).parse(read)]).toEqual([seconds, seconds]);
});

test.each([0, "0s", -1, "2h", "soon", null])("refuses %j as seconds above 0 and up to an hour", (written) =>
  expect(Seconds(3600).safeParse(written).success).toBe(false),
);
