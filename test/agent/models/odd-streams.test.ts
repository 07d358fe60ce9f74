// Streams that servers are known to send, however they arrive: each becomes the reply that was meant, or a failure that says what it is.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { dataOf, textSeen } from "../../support/drain.ts";
import { type Outcome, RECORDED, type Recorded, readPieces } from "./recorded-streams.ts";

/** What a viewer of the deltas must have seen at the end. */
function checkDeltas({ reply, events }: Extract<Outcome, { reply: unknown }>): void {
  const deltas = dataOf(events, "on_chat_model_stream");
  expect(textSeen(events)).toBe(reply.content);
  expect(deltas.every((delta) => JSON.stringify(delta).isWellFormed())).toBe(true);
  const pieces = deltas.flatMap((data) => ("tool_call" in data ? [data.tool_call] : []));
  for (const [index, { id, name, args }] of (reply.stop_reason === "refusal"
    ? []
    : reply.tool_calls
  ).entries()) {
    const own = pieces.filter((piece) => piece.index === index);
    expect(own[0]).toMatchObject({ id, name });
    expect(JSON.parse(own.map(({ args_delta }) => args_delta).join("") || "{}")).toEqual(args);
  }
}

/** The outcome in the form of a recording. */
function told(outcome: Outcome, { expected }: Recorded) {
  if ("failure" in outcome) return { failure: outcome.failure.code };
  checkDeltas(outcome);
  const { content, reasoning, tool_calls, stop_reason, usage, remark } = outcome.reply;
  const wanted = "reply" in expected ? expected.reply : undefined;
  return {
    reply: {
      ...{ content, thought: reasoning.map(({ text }) => text).join(""), stop: stop_reason },
      ...(remark ? { remark: remark.code } : {}),
      calls: tool_calls.map(({ id, name, args }, at) => ({
        ...(wanted?.calls[at]?.id === undefined ? {} : { id }),
        ...{ name, args },
      })),
      ...(wanted?.usage ? { usage: [usage.input_tokens, usage.output_tokens] } : {}),
      ...(wanted?.cached === undefined ? {} : { cached: usage.cache_read_tokens }),
    },
  };
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...sorted].map((start, at) => bytes.subarray(start, sorted[at] ?? bytes.length));
}

const SERVERS = [...new Set(RECORDED.map(({ server }) => server))];
const isText = ({ bytes, type }: Recorded) =>
  !type.includes("amazon") && /^(data|event|:)/.test(bytes.toString());

describe.each(SERVERS)("a stream of %s", (server) => {
  const recordings = RECORDED.filter((each) => each.server === server);

  test.each(recordings)("$name", (recorded) => {
    expect(told(readPieces(recorded, [recorded.bytes]), recorded)).toEqual(recorded.expected);
  });

  test("has the same result however packets split it, even within a character", () => {
    for (const recorded of recordings) {
      const letters = [...recorded.bytes.keys()];
      expect(told(readPieces(recorded, cutAt(recorded.bytes, letters)), recorded)).toEqual(recorded.expected);
      fc.assert(
        fc.property(fc.array(fc.nat(recorded.bytes.length), { maxLength: 12 }), (places) => {
          const pieces = cutAt(recorded.bytes, places);
          expect(told(readPieces(recorded, pieces), recorded)).toEqual(recorded.expected);
        }),
        { numRuns: 20 },
      );
    }
  });

  test("has the same result with proxies' comments and line ends between its events", () => {
    const noise = fc.constantFrom(
      ...["data:\n\n", "data:   \n\n", ": ping\n\n", "data: : waiting\n\n", "\n\n", "id: 7\n\n"],
      ...['event: ping\ndata: {"type": "ping"}\n\n', "retry: 3000\n\n", "data: null\n\n"],
    );
    for (const recorded of recordings.filter(isText)) {
      const frames = recorded.bytes
        .toString()
        .split(/\n\n/)
        .map((frame) => `${frame.trimEnd()}\n\n`);
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.nat(), noise), { maxLength: 6 }), fc.boolean(), (added, isCrlf) => {
          const noisy = [...frames];
          for (const [place, text] of added) noisy.splice(place % (frames.length + 1), 0, text);
          const text = noisy.join("").replaceAll("\n", isCrlf ? "\r\n" : "\n");
          const outcome = readPieces(recorded, [Buffer.from(text)]);
          expect(told(outcome, recorded)).toEqual(recorded.expected);
        }),
        { numRuns: 20 },
      );
    }
  });

  test("that is cut anywhere yields the same reply or an error, never another reply", () => {
    for (const recorded of recordings) {
      for (let end = 0; end < recorded.bytes.length; end++) {
        const outcome = readPieces(recorded, [recorded.bytes.subarray(0, end)]);
        if ("failure" in outcome) continue;
        const {
          usage: _,
          cached: __,
          ...wanted
        } = "reply" in recorded.expected ? recorded.expected.reply : {};
        expect(told(outcome, recorded).reply).toMatchObject(wanted);
      }
    }
  });
});
