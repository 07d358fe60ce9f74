import fc from "fast-check";
import { expect, test } from "vitest";
import { charsOf, jsonParts } from "../../../src/server/http/json-parts.ts";

const WHOLE_CHARS = 32 * 1024;

test("the parts of any value form its JSON", () => {
  const filler = "x".repeat(WHOLE_CHARS);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      for (const each of [value, { value, filler, none: undefined }, [value, filler, [], {}]])
        expect([...jsonParts(each)].join("")).toBe(JSON.stringify(each));
    }),
  );
});

test("no part of a long value is longer than a short one or a text, however it is nested", () => {
  const record = (count: number, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`key${index}`, value]));
  const value = { files: record(500, { content: "c".repeat(16_000) }), list: [[record(9_000, 1)]] };
  const parts = [...jsonParts(value)];
  expect(JSON.parse(parts.join(""))).toEqual(value);
  expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(WHOLE_CHARS);
});

test("a value longer than requested is not measured to its end", () => {
  let looked = 0;
  const item = {
    get text() {
      looked++;
      return "x".repeat(1000);
    },
  };
  charsOf(Array(1000).fill(item), 10_000);
  expect(looked).toBeLessThan(20);
});
