import { expect, test } from "vitest";
import { isTooLarge, replyOf } from "../../src/page/diagram-messages.ts";

test("a diagram that would take too long to draw is too large: its text, its lines, one line, or its number of boxes", () => {
  expect(isTooLarge("A --> B\n".repeat(150))).toBe(false);
  expect(isTooLarge("A --> B\n".repeat(250))).toBe(true);
  expect(isTooLarge(`${"w".repeat(400)}\n`.repeat(40))).toBe(true);
  expect(isTooLarge(`A[${"w".repeat(600)}]`)).toBe(true);
  expect(isTooLarge("block-beta\n  columns 3\n  a space:100000000 b")).toBe(true);
  expect(isTooLarge("block-beta\n  columns 3\n  a space:2 b")).toBe(false);
  expect(isTooLarge('packet-beta\n0-3000000: "x"')).toBe(true);
  expect(isTooLarge('pie\n  "Sold" : 3000000')).toBe(false);
});

test("the page accepts only replies from the frame, cut to the shown length", () => {
  const others = [undefined, null, 1, "drawn", {}, { kind: "drawn" }, { kind: "failed" }, { kind: "other" }];
  for (const height of [...["9", Number.NaN, -1, 0, 1.5], Number.POSITIVE_INFINITY])
    expect(replyOf({ kind: "drawn", height })).toBeUndefined();
  for (const other of others) expect(replyOf(other)).toBeUndefined();
  expect(replyOf({ kind: "ready", more: 1 })).toEqual({ kind: "ready" });
  expect(replyOf({ kind: "drawn", height: 12, more: 1 })).toEqual({ kind: "drawn", height: 12 });
  const failed = replyOf({ kind: "failed", why: "<b>", line: "1", message: "m".repeat(10_000) });
  expect(failed).toMatchObject({ kind: "failed", why: "unreadable", line: undefined });
  expect(failed?.kind === "failed" && failed.message.length).toBeLessThan(1_000);
});
