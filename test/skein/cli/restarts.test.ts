import { expect, test } from "vitest";
import { delayAfter, givesUp, shortLives } from "../../../src/skein/cli/serve/workers.ts";

/** The delays after lives of so many ms, one after the other. */
function delaysAfter(lives: readonly number[]): number[] {
  let short = 0;
  return lives.map((ms) => {
    short = shortLives(short, ms);
    return delayAfter(short);
  });
}

test("the delay before a worker is started again doubles with each short life, up to 30 s", () => {
  expect(delaysAfter(Array.from({ length: 9 }, () => 10))).toEqual([
    ...[500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000],
  ]);
});

test("a worker that ended after a minute of work is restarted immediately, and earlier ends are forgotten", () => {
  expect(delaysAfter([10, 10, 60_000, 10])).toEqual([500, 1000, 0, 500]);
});

test("a server ends with the first worker that cannot start, and later after five failed starts if none serves", () => {
  expect(givesUp({ isFirst: true, failed: 1, serving: 1 })).toBe(true);
  expect(givesUp({ isFirst: true, failed: 0, serving: 0 })).toBe(false);
  expect(givesUp({ isFirst: false, failed: 4, serving: 0 })).toBe(false);
  expect(givesUp({ isFirst: false, failed: 5, serving: 0 })).toBe(true);
  expect(givesUp({ isFirst: false, failed: 100, serving: 1 })).toBe(false);
});
