import { expect, test } from "vitest";
import { Duration } from "../../src/lib/units.ts";

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
