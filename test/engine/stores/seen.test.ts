import { describe, expect, test } from "vitest";
import { type LogWindow, seenOf } from "../../../src/engine/stores/seen.ts";
import { upTo } from "./fixture.ts";

/** A log of which `epochs` wrote an entry each, the first of them with the number `first`. */
function log(epochs: readonly number[], first = 1): LogWindow {
  return { first, last: first + epochs.length - 1, epochOf: (seq) => epochs[seq - first] };
}

describe("a returning reader", () => {
  const taken = log([1, 1, 1, 3, 3, 3]);

  test("has seen existing entries in their current form", () => {
    for (const seq of upTo(3)) expect(seenOf(taken, { seq, epoch: 1 })).toBe(seq);
    for (const seq of upTo(6, 4)) expect(seenOf(taken, { seq, epoch: 3 })).toBe(seq);
    expect(seenOf(taken, { seq: 0, epoch: 1 })).toBe(0);
  });

  test("has seen the entries of its epoch from before the rest was lost", () => {
    for (const seq of [4, 6, 100]) expect(seenOf(taken, { seq, epoch: 1 })).toBe(3);
    expect(seenOf(taken, { seq: 7, epoch: 3 })).toBe(6);
  });

  test("must start with the kept entries if nothing of its epoch is left", () => {
    for (const seq of [2, 5, 9]) expect(seenOf(taken, { seq, epoch: 2 })).toBe(0);
    expect(seenOf(taken, { seq: 6, epoch: 4 })).toBe(0);
    expect(seenOf(log([], 1), { seq: 3, epoch: 1 })).toBe(0);
  });

  test("need not have seen an entry that is no longer kept", () => {
    const trimmed = log([1, 2, 2], 11);
    expect(seenOf(trimmed, { seq: 10, epoch: 1 })).toBe(10);
    expect(seenOf(trimmed, { seq: 10, epoch: 2 })).toBe(10);
    expect(seenOf(trimmed, { seq: 9, epoch: 1 })).toBe(10);
    expect(seenOf(log([], 11), { seq: 10, epoch: 7 })).toBe(10);
  });

  test("is identified by its number alone if it names no epoch", () => {
    for (const [seq, seen] of [
      [0, 0],
      [4, 4],
      [9, 6],
    ] as const)
      expect(seenOf(taken, { seq })).toBe(seen);
  });
});
