// What reads a stranger's text takes processor time linear in it.

import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readArguments } from "../src/agent/core/call-arguments.ts";
import { titleFrom } from "../src/agent/core/title.ts";
import { lineWindow } from "../src/agent/hooks/filesystem/read.ts";
import { rulesOf } from "../src/agent/hooks/guardrails/rules.ts";
import { decide, makePolicy } from "../src/agent/hooks/permissions/policy.ts";
import { ruleOf } from "../src/agent/hooks/permissions/rule.ts";
import { parseSkill } from "../src/agent/hooks/skills/skill-files.ts";
import { clip } from "../src/agent/hooks/summarization/truncate.ts";
import { failureOf, ProviderError } from "../src/agent/models/failure.ts";
import { untagged } from "../src/agent/models/openai/google.ts";
import { streamOf } from "../src/agent/tools/http/stream.ts";
import { didYouMean } from "../src/lib/did-you-mean.ts";
import { globMatcher } from "../src/lib/glob.ts";
import { jsonSize } from "../src/lib/json.ts";
import { maskOf } from "../src/lib/mask.ts";
import { safeRegex } from "../src/lib/regex.ts";
import { sseParser } from "../src/lib/sse-parser.ts";
import { headTail, xmlTag } from "../src/lib/text.ts";
import { readYaml } from "../src/lib/yaml/document.ts";
import { interpolate } from "../src/lib/yaml/interpolate.ts";
import { contentOf, fromField } from "../src/page/content.ts";
import { diffLines } from "../src/page/diff.ts";
import { differencesOf } from "../src/page/file-changes.ts";
import { growingMarkdown } from "../src/page/markdown.ts";
import { toMarkdown } from "../src/page/transcript.ts";
import { editing } from "../src/sandbox/edit.ts";
import { markdown as forTerminal } from "../src/skein/cli/markdown.ts";
import { visible } from "../src/skein/cli/paint.ts";
import { readDataUrl } from "../src/wires/messages.ts";
import { sideRequest } from "../src/wires/openai/side-requests.ts";
import { answersInWords } from "../src/wires/words.ts";
import { sampled } from "./support/seed.ts";

/** Texts on which natives, backtracking expressions and recursion have taken more than linear time. */
const FAMILIES: Readonly<Record<string, (length: number) => string>> = {
  ...Object.fromEntries(
    [
      "a",
      " ",
      "\n",
      "\r",
      "\t",
      "\0",
      ">",
      "!",
      "*",
      "_",
      "`",
      "[",
      "(",
      "{",
      "<",
      '"',
      "'",
      "\\",
      "/",
      ".",
      "-",
      "#",
      "$",
      ":",
      ",",
      "1",
      "=",
      "~",
      "|",
      "&",
      "@",
      "?",
      ";",
    ].map((char) => [`${JSON.stringify(char)} alone`, (length: number) => char.repeat(length)]),
  ),
  ...Object.fromEntries(
    [
      "a b",
      "__a_",
      "*a ",
      "a**",
      "**a ",
      "`a",
      "```\n",
      "1. ",
      "- ",
      "> ",
      "- > a\n",
      "a\n",
      "a\r\n",
      "\r\n",
      "|a",
      "a.",
      "a@b.",
      "www.",
      "http://",
      "[a](",
      "![",
      "<a ",
      "<!--",
      "a=b ",
      "${",
      "$(",
      "$a",
      "`\\",
      "../",
      "./",
      "x/",
      "\\n",
      "\\u0000",
      '{"a":',
      "[1,",
      '"a",',
      "<think>",
      "</thought>",
      "<< a\n",
      "&& ",
      "; a",
      "| a",
      "\u0301\u0316",
      "\uff9e\u0301",
      "\ufdfa",
      "\u200b",
      "\ud83d",
      "\u{1f600}",
      "data: a\n",
      "data:\n\n",
      "- a\n",
      "a: &a\n",
      "&a [",
      "*a, ",
      "  ",
      "\u2028",
    ].map((part) => [
      `${JSON.stringify(part)}, many times`,
      (length: number) => part.repeat(length / part.length),
    ]),
  ),
  "a…ab": (length) => `${"a".repeat(length - 1)}b`,
  "a…aba…a": (length) => `${"a".repeat(length / 2)}b${"a".repeat(length / 2)}`,
  "blanks and a letter": (length) => `a${" ".repeat(length)}b`,
  "openers, then closers": (length) => "[".repeat(length / 2) + "]".repeat(length / 2),
  "digits and a letter": (length) => `${"1".repeat(length)}x`,
  "dots and a letter": (length) => `${".".repeat(length)}x`,
  "a name with a port, almost": (length) => `${"a-".repeat(length / 2)}:`,
  "many keys": (length) =>
    Array.from({ length: length / 8 }, (_, at) => `${String(at).padStart(5, "0")}: \n`).join(""),
};

const call = (name: string, args: object) => ({ id: "c", name, args: args as Record<string, unknown> });
const agent = "a";
const policies = (["default", "accept_edits", "dont_ask", "bypass"] as const).map((mode) =>
  makePolicy({
    mode,
    agent,
    session: "",
    rules: [
      ruleOf({ deny: "execute", command_prefix: ["rm -rf"] }),
      ruleOf({ allow: "execute", command_prefix: ["npm test"] }),
      ruleOf({ ask: "execute", regex: "(a+)+$" }),
    ],
  }),
);
const decided = (name: string, args: object) => {
  for (const policy of policies) decide(call(name, args), undefined, policy);
};
/** As long as the text may be, and everywhere almost found. */
const needleIn = (text: string) => `${text.slice(0, text.length / 8)}\u0001${text.slice(0, text.length / 8)}`;
const open = [{ id: "q", call_id: "q", name: "ask", kind: "question", prompt: "?", options: ["a"] }] as never;
const guard = rulesOf({
  deny: ["(a+)+b$", "\\bx.*y\\b"],
  allow: [".*"],
  topics: ["a".repeat(190), "weapons of war"],
});
const interrupts = open as Parameters<typeof answersInWords>[1];

const READERS: Readonly<Record<string, (text: string) => unknown>> = {
  async edit_file(text) {
    const file = { path: "/f", type: "file", size: 1, modified: "" };
    const { edit } = editing({
      stat: async () => file as never,
      read: () => Readable.from([Buffer.from(text)]),
      write: async () => ({}) as never,
    });
    const { signal } = new AbortController();
    await edit("/f", needleIn(text), "x", signal).catch(() => {});
    await edit("/f", text.slice(-1000), "x", signal).catch(() => {});
  },
  read_file(text) {
    const window = lineWindow(100, 100, 1000);
    window.take(text);
  },
  "a path of glob": (text) => globMatcher("**/a*b/*.{ts,tsx}")(text),
  "a pattern of glob"(text) {
    try {
      globMatcher(text.slice(0, 1000));
    } catch {}
  },
  "a line of grep"(text) {
    const regex = safeRegex("(a|aa)+$|\\s+b");
    return [regex.test(text), regex.find(text)];
  },
  guardrails: guard,
  "permissions of a command": (text) => decided("execute", { command: text.slice(0, text.length / 4) }),
  "permissions of a program": (text) =>
    decided("execute", { command: `${text.replaceAll(/[^\w.-]/g, "1").slice(0, text.length / 4)}x` }),
  "permissions of a path": (text) => decided("write_file", { path: text, content: "x" }),
  masks(text) {
    const mask = maskOf([
      ["x-key", `${"a".repeat(2000)}b${"a".repeat(2000)}`],
      ["token", text.slice(0, 4000)],
    ]);
    const pieces = mask.inPieces();
    for (let at = 0; at < text.length; at += 1000) pieces.push(text.slice(at, at + 1000));
    return [mask(text), pieces.end()];
  },
  "markdown of the page": (text) => growingMarkdown()(text, true),
  "markdown of the page, as it grows": (text) => growingMarkdown()(text, false),
  "markdown of the terminal"(text) {
    const shown = forTerminal((_, plain) => plain);
    for (let at = 0; at < text.length; at += 7) shown.write(text.slice(at, at + 7));
    return shown.end();
  },
  "plain text of the terminal": visible,
  "a difference of the page": (text) => diffLines(text, `${text}\nmore\n${text}`),
  "edits of the page": (text) =>
    differencesOf({
      path: "/f",
      op: "edit",
      before: text,
      content: `${text}x`,
      edits: [
        { old_text: "x", new_text: "y" },
        { old_text: needleIn(text), new_text: "y" },
      ],
    } as never),
  "a file on the page": (text) => [contentOf(Buffer.from(text), true), fromField(text, "\r\n")],
  "a transcript": (text) =>
    toMarkdown(text, [{ id: "1", role: "user", content: text, created_at: "" } as never]),
  "server-sent events": (text) => sseParser(() => {}).push(Buffer.from(text)),
  "server-sent events in pieces"(text) {
    const parser = sseParser(() => {});
    for (let at = 0; at < text.length; at += 50) parser.push(Buffer.from(text.slice(at, at + 50)));
  },
  async "lines of a callback tool"(text) {
    const read = streamOf("application/x-ndjson", 1e9);
    const chunks = Array.from({ length: 20 }, (_, at) =>
      Buffer.from(text.slice((at * text.length) / 20, ((at + 1) * text.length) / 20)),
    );
    for await (const _ of read?.(Readable.from(chunks)) ?? []);
  },
  "arguments of a call": (text) => [
    readArguments(text),
    readArguments(`{"a":"${text}`),
    readArguments(`{"a":${text}}`),
  ],
  "a title": (text) => titleFrom([{ id: "1", role: "user", content: text, created_at: "" } as never]),
  "head and tail"(text) {
    const kept = headTail(1000);
    for (let at = 0; at < text.length; at += 10) kept.push(text.slice(at, at + 10));
    return kept.read();
  },
  "a tag": (text) => xmlTag("memory", text),
  "a YAML document": (text) => readYaml("f", text, {}),
  "a skill": (text) =>
    parseSkill({ path: "/s", text: `---\n${text}\n---\n${text}`, truncated: false } as never),
  variables: (text) => interpolate(text, {}),
  "an error of a provider": (text) =>
    failureOf(new ProviderError(text, { refusal: { status: 400, headers: new Headers() } }), {
      model: "m",
      secret: "k".repeat(20),
    }),
  thoughts: untagged,
  "a clipped text": (text) => clip(text, 1000),
  "an answer in words": (text) => answersInWords(text, interrupts),
  "a side request": (text) => sideRequest({}, { text: `### Task:\n${text}`, isAlone: true } as never),
  "a data URL"(text) {
    try {
      readDataUrl(`data:${text}`);
    } catch {}
  },
  "a word that is not known": (text) => didYouMean(text, ["alpha", "beta"]),
  "the size of JSON": (text) => jsonSize(Buffer.from(text)),
};

/** Of this thread: V8 compiles and collects garbage on others. */
async function cpuMs(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const LENGTH = 80_000;
const PARTS = 8;
/** Linear work takes as long for the parts as for the whole, and quadratic work 8 times as long for the whole. */
const MOST_TIMES = Math.sqrt(PARTS);
/** Below it, the clock and the collector of garbage say more than the work. */
const FLOOR_MS = 20;

/** How much more time a text takes than its length in parts: the least of some tries, since others use the processor as well. */
async function growth(read: (text: string) => unknown, family: (length: number) => string): Promise<number> {
  const [whole, part] = [family(LENGTH), family(LENGTH / PARTS)];
  const inParts = async () => {
    for (let count = 0; count < PARTS; count++) await read(part);
  };
  let [ofWhole, ofParts] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let tries = 0; tries < 20; tries++) {
    ofWhole = Math.min(ofWhole, await cpuMs(() => read(whole)));
    if (ofWhole < FLOOR_MS) return 1;
    ofParts = Math.min(ofParts, await cpuMs(inParts));
    if (ofWhole <= MOST_TIMES * ofParts) break;
  }
  return ofWhole / ofParts;
}

test.each(Object.entries(READERS))("%s takes time linear in the text", async (_, read) => {
  await read(FAMILIES["a…ab"]?.(LENGTH) ?? "");
  const slow: string[] = [];
  for (const [name, family] of sampled(Object.entries(FAMILIES), 3)) {
    const times = await growth(read, family);
    if (times > MOST_TIMES) slow.push(`${name}: ${times.toFixed(1)} times`);
  }
  expect(slow).toEqual([]);
});
