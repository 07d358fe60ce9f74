import fc from "fast-check";
import { expect, test } from "vitest";
import { countsOf, diffLines, hunksOf } from "../../src/page/diff.ts";

const texts = fc
  .array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 })
  .chain((lines) => fc.constantFrom(lines.join("\n"), lines.map((line) => `${line}\n`).join("")));

test("a diff contains both texts, line by line", () => {
  fc.assert(
    fc.property(texts, texts, (before, after) => {
      const lines = diffLines(before, after);
      const side = (other: string) =>
        lines
          .filter(({ kind }) => kind !== other)
          .map(({ text }) => text)
          .join("");
      expect(side("added")).toBe(before);
      expect(side("removed")).toBe(after);
    }),
  );
});

test("no shorter list of changes turns one text into the other", () => {
  const lines = (text: string) => (text === "" ? [] : text.split(/(?<=\n)/));
  const inCommon = (one: string[], other: string[]): number => {
    const [first, ...rest] = one;
    const [second, ...others] = other;
    if (first === undefined || second === undefined) return 0;
    if (first === second) return 1 + inCommon(rest, others);
    return Math.max(inCommon(rest, other), inCommon(one, others));
  };
  const short = fc.array(fc.constantFrom("a\n", "b\n"), { maxLength: 6 }).map((all) => all.join(""));
  fc.assert(
    fc.property(short, short, (before, after) => {
      const { added, removed } = countsOf(diffLines(before, after));
      const common = inCommon(lines(before), lines(after));
      expect({ added, removed }).toEqual({
        added: lines(after).length - common,
        removed: lines(before).length - common,
      });
    }),
  );
});

test("lines are numbered as in their own text", () => {
  expect(diffLines("a\nb\nc\n", "a\nx\nc\n")).toEqual([
    { kind: "same", text: "a\n", before: 1, after: 1 },
    { kind: "removed", text: "b\n", before: 2 },
    { kind: "added", text: "x\n", after: 2 },
    { kind: "same", text: "c\n", before: 3, after: 3 },
  ]);
});

test("texts that differ everywhere are shown as replaced", () => {
  const many = (letter: string) => Array.from({ length: 3000 }, (_, index) => `${letter}${index}\n`).join("");
  expect(countsOf(diffLines(many("a"), many("b")))).toEqual({ added: 3000, removed: 3000 });
});

test("distant changes are shown separately, and close ones together", () => {
  const text = (changed: readonly number[]) =>
    Array.from({ length: 40 }, (_, index) => `${changed.includes(index) ? "new" : index}\n`).join("");
  const hunks = hunksOf(diffLines(text([]), text([5, 9, 30])));
  expect(hunks.map((lines) => [lines[0]?.before, lines.at(-1)?.before])).toEqual([
    [3, 13],
    [28, 34],
  ]);
});

test("every change is in exactly one hunk", () => {
  fc.assert(
    fc.property(texts, texts, fc.nat(4), (before, after, around) => {
      const lines = diffLines(before, after);
      const shown = hunksOf(lines, around).flat();
      expect(new Set(shown).size).toBe(shown.length);
      expect(countsOf(shown)).toEqual(countsOf(lines));
    }),
  );
});
