import { expect, test } from "vitest";
import { closestMatch } from "../../src/lib/did-you-mean.ts";

const KEYS = ["model", "memory", "max_iterations", "system_prompt", "tools"];

test.each([
  ["modle", "model"],
  ["Model", "model"],
  ["tool", "tools"],
  ["iterations", "max_iterations"],
  ["prompt", "system_prompt"],
  ["memroy", "memory"],
])("suggests %s for %s", (word, meant) => expect(closestMatch(word, KEYS)).toBe(meant));

test.each(["", "x", "permissions", "m".repeat(100)])("suggests nothing for %j", (word) =>
  expect(closestMatch(word, KEYS)).toBeUndefined(),
);
