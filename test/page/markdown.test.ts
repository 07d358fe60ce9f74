// What a model writes, as elements of the page.

import fc from "fast-check";
import { expect, test } from "vitest";
import { growingParts } from "../../src/page/growing-parts.ts";
import { type Element, growingMarkdown, type Node } from "../../src/page/markdown.ts";
import { wordsOf } from "../../src/page/markdown-words.ts";
import { examples, htmlOf, seenOf } from "./gfm.ts";

const whole = (text: string) => growingMarkdown()(text, true);

const elements = (nodes: readonly Node[]): Element[] =>
  nodes.flatMap((node) => (typeof node === "string" ? [] : [node, ...elements(node.children)]));
const textOf = (nodes: readonly Node[]): string =>
  nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");

const DOCUMENT = `# Title

Some **bold** and *slanted* words, \`code\` and <b>HTML</b> & "quotes".

- one
- two
  - three

1. first

2. second, after an empty line

\`\`\`ts
const a = "<b>"; // 1 & 2

const b = 2;
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

> a quote

[words](https://example.com/a) and https://example.com/b

Last words`;

test.each(examples())("is rendered as GitHub's specification requires: $section, $markdown", (example) => {
  expect(seenOf(htmlOf(whole(example.markdown)), example)).toBe(seenOf(example.html, example));
});

test("Markdown is the same however it arrives", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 60 }), (steps) => {
      const grow = growingMarkdown();
      let length = 0;
      for (const step of steps) {
        length += step;
        grow(DOCUMENT.slice(0, length), false);
      }
      expect(grow(DOCUMENT, false)).toEqual(whole(DOCUMENT));
    }),
  );
});

test("complete blocks are not rendered again", () => {
  const grow = growingMarkdown();
  const before = grow(DOCUMENT, false);
  const after = grow(`${DOCUMENT} and more`, false);
  expect(after.length).toBe(before.length);
  expect(after.filter((block, index) => block === before[index]).length).toBeGreaterThan(3);
});

test("HTML characters are shown as written", () => {
  const text = "a < b && c > d \"quoted\" 'single' `<i>` <script>alert(1)</script>";
  expect(textOf(whole(text))).toBe(text.replaceAll("`", ""));
});

test.each([">", "1. ", "- > "])("%j thousands of times is shown, and too deep parts as written", (mark) => {
  const shown = whole(`before\n\n${mark.repeat(3000)}end`);
  expect(elements(shown).map(({ tag }) => tag)).toContain(mark === ">" ? "blockquote" : "li");
  expect(textOf(shown)).toMatch(/^before.*end$/s);
});

test("a paragraph of any length has its bold text, and all of its text", () => {
  const words = "some **bold** words ".repeat(1000);
  const shown = whole(words);
  expect(elements(shown).filter(({ tag }) => tag === "strong").length).toBeGreaterThan(990);
  expect(textOf(shown).replaceAll("**", "") === words.replaceAll("**", "")).toBe(true);
  expect(textOf(whole("!".repeat(60_001))) === "!".repeat(60_001)).toBe(true);
});

test("a long text that arrives at once is rendered piece by piece", () => {
  const paragraphs = "some **bold** words\n\n".repeat(3000);
  const grow = growingMarkdown();
  const bold = () => elements(grow(paragraphs, false)).filter(({ tag }) => tag === "strong").length;
  const counts = [bold(), bold(), bold(), bold(), bold()];
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(counts[0]).toBeLessThan(3000);
  expect(counts[4]).toBe(3000);
});

const HOSTILE = [
  "![x](http://127.0.0.1:9/leak?q=SECRET)",
  '<img src=x onerror="window.pwned=1">',
  "[click](javascript:window.pwned=3)",
  "[a](data:text/html,<script>opener.pwned=5</script>)",
  '<a href="&#106;avascript:window.pwned=7">b</a>',
  "[b](&#106;avascript:window.pwned=7)",
  "[ref]: javascript:window.pwned=8\n\n[ref]",
  "[file](file:///etc/passwd) [blob](blob:http://a/b) [vb](vbscript:x)",
  "[tab](java\tscript:alert(1))",
];

test("only addresses that a person may follow become links, and a link names its host", () => {
  const marks = fc.constantFrom(
    ...HOSTILE,
    "[",
    "](",
    ")",
    "<",
    ">",
    '"',
    "javascript:",
    "http://x.y",
    "\n\n",
    "*",
    "`",
  );
  fc.assert(
    fc.property(fc.array(marks, { maxLength: 12 }), (pieces) => {
      for (const { tag, href, path } of elements(whole(pieces.join(""))))
        if (href !== undefined) expect(href).toMatch(/^(https?:|mailto:)/);
        else if (tag === "a") expect(path).not.toMatch(/^(\w+:|\/\/)/);
    }),
  );
  const [link] = elements(whole("[my bank](https://evil.example/?q=1)")).filter(({ tag }) => tag === "a");
  expect(link).toMatchObject({ href: "https://evil.example/?q=1", host: "evil.example" });
});

test("an image is a link that names its host", () => {
  const made = elements(whole("![a cat](https://example.com/cat.png)"));
  expect(made.map(({ tag }) => tag)).toEqual(["p", "picture"]);
  expect(made[1]).toMatchObject({ href: "https://example.com/cat.png", host: "example.com" });
});

test("a link with a long query is shown in full", () => {
  const href = `https://evil.example/?q=${"a".repeat(200)}`;
  expect(elements(whole(`[here](${href})`))[1]).toMatchObject({ tag: "a", host: href });
});

test("a list of tasks has a box before each, in loose lists too", () => {
  const boxes = (text: string) => elements(whole(text)).filter(({ tag }) => tag === "checkbox");
  expect(boxes("- [x] done\n- [ ] to do").map(({ isChecked }) => isChecked)).toEqual([true, false]);
  expect(boxes("1. [x] done\n\n2. [ ] to do").map(({ isChecked }) => isChecked)).toEqual([true, false]);
  expect(textOf(whole("- [x] done\n- [ ] to do"))).toBe("doneto do");
});

test("footnotes are numbered by their marks and come last; a mark without a note stays as written", () => {
  const shown = whole(
    "One[^b] and two[^a], again[^b], none[^c].\n\n[^a]: First *note*.\n[^b]: Second.\n\n    Its end.\n\nLast.",
  );
  const marks = elements(shown).filter(({ tag }) => tag === "footnote-mark");
  expect(marks.map(({ number }) => number)).toEqual([1, 2, 1]);
  expect(shown.map(({ tag }) => tag)).toEqual(["p", "p", "footnotes"]);
  expect(textOf(shown)).toBe("One and two, again, none[^c].Last.Second.Its end.First note.");
});

const MATHS_WRITTEN = [
  ["\\(a_1 + b\\)", "a_1 + b"],
  ["\\[ E = mc^2 \\]", "E = mc^2"],
  ["\\[\na\n+ b\n\\, c\n\\]", "a\n+ b\n\\, c"],
  ["$$\\frac{1}{2}$$", "\\frac{1}{2}"],
  ["so $x^2$ is", "x^2"],
  ["let $n$ be", "n"],
] as const;

test.each(MATHS_WRITTEN)("%j is maths, and none of its characters change", (text, source) => {
  const [found, ...more] = elements(whole(text)).filter(({ tag }) => tag === "maths");
  expect([found?.source, more]).toEqual([source, []]);
  expect(text).toContain(textOf(found?.children ?? []));
});

test.each([
  "costs $5 and $10",
  "from $5_000 to $6_000",
  "US$5=A$7",
  "$HOME_DIR$ and $PATH",
  "`\\(a\\)`",
  "an escaped \\[word\\] and \\(some words\\)",
  "\\[no link\\](https://example.com)",
])("%j contains no maths", (text) => {
  expect(elements(whole(text)).filter(({ tag }) => tag === "maths")).toEqual([]);
});

test.each([
  ["**Done:** see [the *report*](a.md) and `x`", "Done: see the report and x"],
  ["# Found\n\n- one\n- two\n\n> three", "Found one two three"],
  ["```ts\nconst a;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |", "const a; a b 1 2"],
  ["**cut in the mid", "**cut in the mid"],
])("%j is summarised in one line", (text, words) => expect(wordsOf(text)).toBe(words));

test("a growing text is divided into stable parts, and starts over if it changes", () => {
  const lines = Array.from({ length: 1_000 }, (_, at) => `line ${at}\n`);
  const parts = growingParts();
  const before = parts(lines.slice(0, 650).join(""));
  const after = parts(lines.join(""));
  expect([before.length, after.length]).toEqual([4, 5]);
  expect(after.slice(0, 3)).toEqual(before.slice(0, 3));
  expect(after.join("")).toBe(lines.join(""));
  expect(parts("another\n")).toEqual(["another\n"]);
});
