import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { type Paint, paintFor, visible } from "../../../src/skein/cli/paint.ts";
import { renderer } from "../../../src/skein/cli/render.ts";

const plain = paintFor(new PassThrough());
const bold: Paint = (style, text) => `<${[style].flat().join(" ")}>${visible(text)}</>`;

/** What a terminal shows of a message that comes in parts of `size` characters. */
function shown(text: string, size: number): string {
  const render = renderer(bold);
  const parts = text.match(new RegExp(`.{1,${size}}`, "gsu")) ?? [];
  const deltas = parts.map((delta) => render({ event: "on_chat_model_stream", data: { delta } }));
  return deltas.join("") + render({ event: "on_chat_model_end", name: "m", data: { message_id: "m" } });
}

/** Text of one style may come in several parts. */
function joined(text: string): string {
  const once = text.replace(/<([a-z ]+)>([^<]*)<\/><\1>/, "<$1>$2");
  return once === text ? text : joined(once);
}

const MARKDOWN: readonly (readonly [what: string, text: string, shown: string])[] = [
  ["headings", "# One `c`\n### Three", "<bold underline>One </><bold underline cyan>c</>\n<bold>Three</>"],
  [
    "bold and italic",
    "**b**, *i*, __b *both*__",
    "<bold>b</>, <italic>i</>, <bold>b </><bold italic>both</>",
  ],
  ["code in a line", "`a ** b` and ``x`y``", "<cyan>a ** b</> and <cyan>x`y</>"],
  ["lists", "- a\n  * **b**\n1. c\n- [ ] d\n- [x] e", "• a\n  • <bold>b</>\n1. c\n☐ d\n☑ e"],
  ["quotes and rules", "> q\n\n---\n", `<dim>│ </>q\n\n<dim>${"─".repeat(30)}</>`],
  ["code blocks", "```js\n# **a**\n```\n**b**", "<dim>─── js</>\n<cyan># **a**</>\n<dim>───</>\n<bold>b</>"],
  ["what is no mark", "2 ** 3, 2**3, a_b_c, **open, \\*x*, -1", "2 ** 3, 2**3, a_b_c, **open, *x*, -1"],
  ["hostile text", "**\u001b[8m** `\u202e`", "<bold>\\u{1b}[8m</> <cyan>\\u{202e}</>"],
];

test.each(MARKDOWN)(
  "Markdown is shown as a terminal allows, however it is split: %s",
  (_, text, expected) => {
    for (const size of [1, 2, 3, 1000]) expect(joined(shown(text, size)).trimEnd()).toBe(expected);
  },
);

test("text appears as it arrives: only a mark waits until it is clear", () => {
  const render = renderer(bold);
  const write = (delta: string) => render({ event: "on_chat_model_stream", data: { delta } });
  expect(["Some ", "words **and", " more", "** now", " `x"].map(write)).toEqual([
    "Some ",
    "words ",
    "",
    "<bold>and more</> now",
    " ",
  ]);
});

test("a mark that is never closed holds back at most a thousand characters", () => {
  const render = renderer(bold);
  const write = (delta: string) => render({ event: "on_chat_model_stream", data: { delta } });
  expect(write(`**${"x".repeat(500)}`)).toBe("");
  expect(write("y".repeat(600))).toBe(`**${"x".repeat(500)}${"y".repeat(600)}`);
});

test("without colours, Markdown is not changed", () => {
  const text = "# One\n\n- **two** `three`\n";
  expect(renderer(plain)({ event: "on_chat_model_stream", data: { delta: text } })).toBe(text);
});

test("an agent's symbol is shown before its name", () => {
  const data = { id: "c", call_id: "c", agent: "coder", name: "coder-fix-1", thread_id: "t", run_id: "r" };
  const shown = renderer(plain)({ event: "on_subagent_start", data: { ...data, prefix: "🤖" } });
  expect(stripVTControlCharacters(shown)).toBe("🤖 coder-fix-1 coder\n");
});

test("subagents' actions are shown indented; their text is not", () => {
  const path = ["call_1"];
  const events: StreamEvent[] = [
    {
      event: "on_subagent_start",
      data: {
        id: "call_1",
        call_id: "call_1",
        agent: "coder",
        name: "coder-fix-1",
        thread_id: "t",
        run_id: "r",
      },
    },
    { event: "on_chat_model_stream", path, data: { delta: "Let me see." } },
    { event: "on_tool_start", name: "look", path, data: { call_id: "c", args: {} } },
    {
      event: "on_subagent_end",
      data: { id: "call_1", call_id: "call_1", status: "completed", summary: "Fixed." },
    },
  ];
  expect(stripVTControlCharacters(events.map(renderer(plain)).join(""))).toBe(
    "⇢ coder-fix-1 coder\n  coder-fix-1 → look {}\ncoder-fix-1 ⇠ completed Fixed.\n",
  );
});

test("several active subagents can be told apart", () => {
  const start = (id: string, name: string): StreamEvent => ({
    event: "on_subagent_start",
    data: { id, call_id: "c", agent: "coder", name, thread_id: "t", run_id: "r" },
  });
  const looks = (id: string): StreamEvent => ({
    event: "on_tool_start",
    ...{ name: "look", path: [id], data: { call_id: "c", args: {} } },
  });
  const events = [start("c#1", "coder-fix-1"), start("c#2", "coder-test-2"), looks("c#2"), looks("c#1")];
  expect(stripVTControlCharacters(events.map(renderer(plain)).slice(2).join(""))).toBe(
    "  coder-test-2 → look {}\n  coder-fix-1 → look {}\n",
  );
});

test("an escape sequence that is split between two deltas is not passed on", () => {
  const deltas = ["\u001b", "[8mhidden", "\u{e0041}".charAt(0), "\u{e0041}".charAt(1), "👩‍", "💻"];
  const shown = deltas
    .map((delta) => renderer(plain)({ event: "on_chat_model_stream", data: { delta } }))
    .join("");
  expect(shown).toBe("\\u{1b}[8mhidden\\u{db40}\\u{dc41}👩‍💻");
});
