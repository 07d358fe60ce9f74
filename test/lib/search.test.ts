import fc from "fast-check";
import { expect, test } from "vitest";
import { maskOf } from "../../src/lib/mask.ts";
import { replacer, replacingAll } from "../../src/lib/replacer.ts";
import { indexIn } from "../../src/lib/search.ts";
import { compatibleForm, hasLongRowOfMarks } from "../../src/lib/unicode.ts";
import { character } from "../support/any-character.ts";

/** Texts of few letters, which repeat themselves. */
const text = (maxLength: number, minLength = 0) =>
  fc.string({ unit: fc.constantFrom("a", "a", "a", "b", "\u{1f600}"), minLength, maxLength });

test("finds the same in text as indexOf", () => {
  fc.assert(
    fc.property(text(300), text(60), fc.nat(50), (long, part, from) => {
      for (const needle of [part, long.slice(from, from + 40), long.slice(from, from + 40) + part]) {
        expect(indexIn(long, needle, from)).toBe(long.indexOf(needle, from));
      }
    }),
    { numRuns: 500 },
  );
});

test("finds a match that begins within a partial match", () => {
  for (const period of ["a", "ab", "aab"]) {
    const needle = `${period.repeat(20)}c`;
    for (let more = 0; more < 45; more++)
      expect(indexIn(`${period.repeat(more)}${needle}`, needle)).toBe(period.length * more);
  }
});

/** Marks each character that lies in one of the needles; those that overlap are one. */
function replacedOneByOne(long: string, needles: readonly string[]): string {
  const parts: { start: number; end: number }[] = [];
  for (let start = 0; start < long.length; start++) {
    const ends = needles.filter((each) => long.startsWith(each, start)).map((each) => start + each.length);
    const last = parts.at(-1);
    if (ends.length === 0) continue;
    if (last && start < last.end) last.end = Math.max(last.end, ...ends);
    else parts.push({ start, end: Math.max(...ends) });
  }
  let from = 0;
  const said = parts.map(({ start, end }) => {
    const before = long.slice(from, start);
    from = end;
    return `${before}*`;
  });
  return said.join("") + long.slice(from);
}

test("replaces all of many texts, however they overlap and wherever the text is split", () => {
  fc.assert(
    fc.property(
      fc.array(text(12), { maxLength: 6 }),
      fc.array(text(5, 1), { maxLength: 5 }),
      (pieces, needles) => {
        const words = new Map(needles.map((needle) => [needle, "*"]));
        const whole = replacedOneByOne(pieces.join(""), needles);
        expect(replacingAll(words)(pieces.join(""))).toBe(whole);
        const reading = replacer(words)();
        const said = pieces.map((piece) => reading.push(piece));
        expect([...said, reading.end()].join("")).toBe(whole);
      },
    ),
    { numRuns: 2000 },
  );
});

test("a secret that overlaps two others leaves nothing of either", () => {
  const mask = maskOf([
    ["x-key", "abcdef-ghijkl"],
    ["token", "ghijkl-mnopqr"],
  ]);
  expect(mask("say abcdef-ghijkl-mnopqr!")).toBe("say ***!");
  expect(mask('{"x":"abcdef-ghijkl"} ghijkl-mnopqr')).toBe('{"x":"***"} ***');
});

test("a secret of six characters is masked, and a shorter value is not", () => {
  const mask = maskOf([
    ["token", "abcdef"],
    ["password", "vwxyz"],
  ]);
  expect(mask("abcdef vwxyz")).toBe("*** vwxyz");
});

test("a text without long sequences of marks has Unicode's compatible form", () => {
  fc.assert(
    fc.property(fc.string({ unit: character }), (any) => compatibleForm(any) === any.normalize("NFKC")),
  );
  const vietnamese = "Tiếng Việt".normalize("NFD");
  expect([hasLongRowOfMarks(vietnamese), compatibleForm(vietnamese)]).toEqual([false, "Tiếng Việt"]);
  expect(hasLongRowOfMarks(`a${"\u0301".repeat(31)}`)).toBe(true);
});

test("no other character becomes a mark in the compatible form", () => {
  const others = Array.from({ length: 0x11_0000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code));
  // Between marks of two classes, what has a class of its own would be moved.
  const moved = others.filter((char) => {
    const form = char.normalize("NFKD");
    return /^\p{M}/u.test(form) && !/^\p{M}\p{L}/u.test(form) && !hasLongRowOfMarks(char.repeat(31));
  });
  expect(moved).toEqual([]);
});
