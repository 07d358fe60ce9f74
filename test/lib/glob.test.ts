import { expect, test } from "vitest";
import { globMatcher } from "../../src/lib/glob.ts";

test.each([
  ["*.ts", ["a.ts", "deep/a.ts", ".ts", "new\nline.ts"], ["a.tsx", "a.ts/b"]],
  ["./*.ts", ["a.ts"], ["deep/a.ts"]],
  ["a/*/b", ["a/x/b"], ["a/b", "a/x/y/b"]],
  ["a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]],
  ["a/**", ["a/b", "a/b/c"], ["a", "ab"]],
  ["**", ["a", "a/b"], []],
  ["**/b", ["b", "a/b"], ["ab"]],
  ["a**b/c", ["axxb/c"], ["a/b/c"]],
  ["{a,b/**}/c", ["a/c", "b/x/c"], ["b/c", "c"]],
  ["{a,{b,c}d}.js", ["a.js", "bd.js", "cd.js"], ["b.js"]],
  ["a.{,min.}js", ["a.js", "a.min.js"], ["a.x.js"]],
  ["[!a-c]?", ["d1"], ["a1", "d"]],
  ["[]x]", ["]", "x"], ["y"]],
  ["[a^]", ["a", "^"], ["b"]],
  ["x[!a]y/z", ["xby/z"], ["x/y/z"]],
  ["a}b,c", ["a}b,c"], ["ab"]],
  ["(a|b)+$.^", ["(a|b)+$.^"], ["a", "aa"]],
  ["\\*\\{\\[", ["*{["], ["a{["]],
  ["🧵?", ["🧵x", "🧵🧵"], ["🧵"]],
])("%j", (pattern, hits, misses) => {
  const matches = globMatcher(pattern);
  expect(hits.filter((path) => !matches(path))).toEqual([]);
  expect(misses.filter(matches)).toEqual([]);
});

test.each([
  ["", "is empty"],
  ["./", "is empty"],
  ["[a", "has a `[` without `]`"],
  ["{a", "has a `{` without `}`"],
  ["[z-a]", "invalid character class range: `z-a`"],
  ["{".repeat(600), "has a `{` without `}`"],
  ["a".repeat(5000), "at most 1000 are allowed"],
])("refuses %j, with the reason", (pattern, reason) => {
  expect(() => globMatcher(pattern)).toThrow(SyntaxError);
  expect(() => globMatcher(pattern)).toThrow(reason);
});

test("refuses a pattern longer than an expression can be before parsing it", () => {
  expect(() => globMatcher("{".repeat(1_000_000))).toThrow(
    "has 1000000 characters; at most 1000 are allowed",
  );
});

// Backtracking over it would run into the time limit of the test.
test("ends for a pattern designed to be slow", () => {
  const matches = globMatcher(`${"{a,aa}*".repeat(30)}b`);
  expect(matches("a".repeat(4000))).toBe(false);
});
