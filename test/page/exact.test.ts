import { expect, test } from "vitest";
import { exact } from "../../src/page/exact.ts";

const shown = (text: string) =>
  exact(text)
    .map((piece) => (typeof piece === "string" ? piece : `⟨${piece.mark}⟩`))
    .join("");

test("code and prose are shown unchanged", () => {
  for (const text of ["", "git status && npm test", "if x:\n        y()\n\n\nz\tw", "naïve 日本語 ❤️ العربية"])
    expect(shown(text)).toBe(text);
});

test("text after many spaces or empty lines is visible, with their number", () => {
  expect(shown(`echo ok${" ".repeat(10_000)}; rm -rf /`)).toBe("echo ok⟨10000 blanks⟩; rm -rf /");
  expect(shown(`echo ok\n${" ".repeat(500)}; rm -rf /`)).toBe("echo ok\n⟨500 blanks⟩; rm -rf /");
  expect(shown(`echo ok${"\n  ".repeat(90)}rm`)).toBe("echo ok\n⟨89 empty lines⟩\n  rm");
});

test("invisible, reordering and lookalike characters are named", () => {
  expect(shown("a\u202egpj.exe")).toBe("a⟨U+202E⟩gpj.exe");
  expect(shown("a\u200bb\u00a0c\u2800d\u3164e\u00adf")).toBe(
    "a⟨U+200B⟩b⟨U+00A0⟩c⟨U+2800⟩d⟨U+3164⟩e⟨U+00AD⟩f",
  );
  expect(shown("\u001b[8mhidden\r\u{e0041}\ud800")).toBe("⟨U+001B⟩[8mhidden⟨U+000D⟩⟨U+E0041⟩⟨U+D800⟩");
});
