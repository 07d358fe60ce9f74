// Replies made at random, written in the ways in which servers write them: in pieces that are cut anywhere, with numbers and ids that repeat,
// with arguments that begin with an empty object or come twice. Each is read as it was meant. A failure prints its seed.

import fc from "fast-check";
import { expect, test } from "vitest";
import { anthropicReply } from "../../../src/agent/models/anthropic/reply.ts";
import { openaiReply } from "../../../src/agent/models/openai/reply.ts";
import type { ReplyReader } from "../../../src/agent/models/reply.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { textSeen } from "../../support/drain.ts";

interface Meant {
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly { readonly name: string; readonly args: Readonly<Record<string, unknown>> }[];
}

/** What a server does to its calls. */
interface Habits {
  /** `own`: each has its number. `same`: all have 0. `none`: there are no numbers. */
  readonly numbers: "own" | "same" | "none";
  readonly ids: "first" | "always" | "never";
  readonly names: "first" | "always" | "late";
  readonly emptyFirst: boolean;
  readonly twice: boolean;
  readonly inTurns: boolean;
}

const text = fc.string({
  unit: fc.constantFrom("a", " ", "ž", "🐎", "\n", '"', "{", "}", "漢"),
  maxLength: 30,
});
const Args = fc.dictionary(fc.constantFrom("path", "n", "list", "__proto__"), fc.jsonValue({ maxDepth: 2 }), {
  minKeys: 1,
});
const Reply: fc.Arbitrary<Meant> = fc.record({
  text,
  thought: text,
  calls: fc.array(fc.record({ name: fc.constantFrom("read", "write", "list"), args: Args }), {
    maxLength: 4,
  }),
});
const Pieces = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 });
const Way: fc.Arbitrary<Habits> = fc
  .record({
    numbers: fc.constantFrom("own", "same", "none"),
    ids: fc.constantFrom("first", "always", "never"),
    names: fc.constantFrom("first", "always", "late"),
    emptyFirst: fc.boolean(),
    twice: fc.boolean(),
    inTurns: fc.boolean(),
  })
  // Without numbers of their own and ids, nothing says where a call without a name begins, nor which call a piece in turns is of.
  .map((way) => (way.numbers === "own" ? way : { ...way, inTurns: false, names: firstOf(way.names) }));

const firstOf = (names: Habits["names"]) => (names === "late" ? "first" : names);

/** `json` in pieces of these lengths, in turn; a piece may be half a character. */
function cut(json: string, lengths: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0, turn = 0; at < json.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    pieces.push(json.slice(at, at + length));
    at += length;
  }
  return pieces;
}

/** The pieces of each call, in their order or in turns. */
function callPieces({ calls }: Meant, way: Habits, lengths: readonly number[]): object[] {
  const strands = calls.map(({ name, args }, number) => {
    const json = JSON.stringify(args);
    const pieces = [...(way.emptyFirst ? ["{}"] : []), ...cut(json, lengths), ...(way.twice ? [json] : [])];
    const nameAt = way.names === "late" ? Math.min(1, pieces.length - 1) : 0;
    return pieces.map((piece, at) => ({
      ...(way.numbers === "none" ? {} : { index: way.numbers === "same" ? 0 : number }),
      ...(way.ids === "always" || (way.ids === "first" && at === 0) ? { id: `call_${number}` } : {}),
      function: {
        ...(at === nameAt || (way.names === "always" && at > nameAt) ? { name } : {}),
        arguments: piece,
      },
    }));
  });
  if (!way.inTurns) return strands.flat();
  const longest = Math.max(0, ...strands.map((strand) => strand.length));
  return Array.from({ length: longest }, (_, at) => strands.flatMap((strand) => strand[at] ?? [])).flat();
}

/** The second call is whole before the name of the first arrives. */
const LATE_NAME: [Meant, Habits, number[], boolean] = [
  {
    text: "",
    thought: "",
    calls: [
      { name: "read", args: { path: [] } },
      { name: "write", args: { n: {} } },
    ],
  },
  { numbers: "own", ids: "first", names: "late", emptyFirst: false, twice: false, inTurns: true },
  [8],
  false,
];

const areDistinct = (calls: Meant["calls"]) =>
  new Set(calls.map((call) => JSON.stringify(call))).size === calls.length;

function read(reader: ReplyReader, events: readonly object[]) {
  const seen: StreamEvent[] = [];
  for (const event of events) reader.take({ ...event }, seen);
  const reply = reader.finish(seen);
  expect(textSeen(seen)).toBe(reply.content);
  expect(seen.every((event) => JSON.stringify(event).isWellFormed())).toBe(true);
  return {
    text: reply.content,
    thought: reply.reasoning.map((each) => each.text).join(""),
    calls: reply.tool_calls.map(({ name, args, malformed = "" }) => ({ name, args, malformed })),
  };
}

const meant = ({ text, thought, calls }: Meant) => ({
  ...{ text, thought },
  calls: calls.map(({ name, args }) => ({ name, args: JSON.parse(JSON.stringify(args)), malformed: "" })),
});

test("a Chat Completions server's reply is read in all the forms that servers use", () => {
  fc.assert(
    fc.property(Reply, Way, Pieces, fc.boolean(), (reply, way, lengths, isWhole) => {
      // The same call twice, without a number or an id, may as well be one that is repeated.
      fc.pre(way.numbers === "own" || way.ids !== "never" || areDistinct(reply.calls));
      const delta = (piece: object) => ({ choices: [{ index: 0, delta: piece }] });
      const pieces = callPieces(reply, way, lengths);
      const events = [
        ...cut(reply.thought, lengths).map((reasoning_content) => delta({ reasoning_content })),
        ...cut(reply.text, lengths).map((content) => delta({ content })),
        ...(isWhole
          ? [delta({ tool_calls: pieces })]
          : pieces.map((piece) => delta({ tool_calls: [piece] }))),
        { choices: [{ delta: {}, finish_reason: reply.calls.length > 0 ? "tool_calls" : "stop" }] },
      ];
      expect(read(openaiReply(), events)).toEqual(meant(reply));
    }),
    { numRuns: 1000, examples: [LATE_NAME] },
  );
});

test("a Messages API server's reply is read in all the forms that servers use", () => {
  fc.assert(
    fc.property(Reply, Pieces, fc.boolean(), fc.boolean(), (reply, lengths, isSame, isWhole) => {
      const place = (index: number) => ({ index: isSame ? 0 : index });
      const block = (index: number, content_block: object) => ({
        type: "content_block_start",
        ...place(index),
        content_block,
      });
      const grow = (index: number, delta: object) => ({
        type: "content_block_delta",
        ...place(index),
        delta,
      });
      const events = [
        block(0, { type: "thinking", thinking: "" }),
        ...cut(reply.thought, lengths).map((thinking) => grow(0, { type: "thinking_delta", thinking })),
        block(1, { type: "text", text: "" }),
        ...cut(reply.text, lengths).map((words) => grow(1, { type: "text_delta", text: words })),
        ...reply.calls.flatMap(({ name, args }, at) => [
          block(at + 2, { type: "tool_use", id: `t${at}`, name, input: isWhole ? args : {} }),
          ...(isWhole ? [] : cut(JSON.stringify(args), lengths)).map((partial_json) =>
            grow(at + 2, { type: "input_json_delta", partial_json }),
          ),
        ]),
        { type: "message_delta", delta: { stop_reason: reply.calls.length > 0 ? "tool_use" : "end_turn" } },
      ];
      expect(read(anthropicReply(), events)).toEqual(meant(reply));
    }),
    { numRuns: 500 },
  );
});
