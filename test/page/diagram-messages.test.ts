import { expect, test } from "vitest";
import { isTooLarge, replyOf } from "../../src/page/diagram-messages.ts";

test("a diagram that would take too long to draw is too large: by its length, and by a line", () => {
  expect(isTooLarge("A --> B\n".repeat(1_000))).toBe(false);
  expect(isTooLarge("A --> B\n".repeat(2_000))).toBe(true);
  expect(isTooLarge(`A[${"w".repeat(600)}]`)).toBe(true);
});

test("of what the frame says only replies count, cut to what is shown", () => {
  const others = [undefined, null, 1, "drawn", {}, { kind: "drawn" }, { kind: "failed" }, { kind: "other" }];
  for (const height of [...["9", Number.NaN, -1, 0, 1.5], Number.POSITIVE_INFINITY])
    expect(replyOf({ kind: "drawn", height })).toBeUndefined();
  for (const other of others) expect(replyOf(other)).toBeUndefined();
  expect(replyOf({ kind: "drawn", height: 12, more: 1 })).toEqual({ kind: "drawn", height: 12 });
  const failed = replyOf({ kind: "failed", why: "<b>", line: "1", message: "m".repeat(10_000) });
  expect(failed).toMatchObject({ kind: "failed", why: "unreadable", line: undefined });
  expect(failed?.kind === "failed" && failed.message.length).toBeLessThan(1_000);
});
