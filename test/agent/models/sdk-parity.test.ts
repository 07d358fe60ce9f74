// Our readers take the place of the SDKs' iterators. What each vendor's iterator hands on, and what comes of
// it, must be what our parser makes of the same bytes, in any packets.

import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { describe, expect, test } from "vitest";
import { anthropicReply } from "../../../src/agent/models/anthropic/reply.ts";
import { openaiReply } from "../../../src/agent/models/openai/reply.ts";
import type { ReplyReader } from "../../../src/agent/models/reply.ts";
import { sseParser } from "../../../src/lib/sse-parser.ts";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { anthropic } from "../../support/fake-provider/anthropic.ts";
import { openai } from "../../support/fake-provider/openai.ts";
import { type Answer, call, redacted, say, think } from "../../support/fake-provider/script.ts";
import type { Vendor } from "../../support/fake-provider/vendor.ts";

const answer: Answer = {
  blocks: [
    ...[think("Hmm. Let me think 🤔."), redacted(), say("Žluťoučký kůň\r\n 漢字 and more.")],
    ...[call("read", { path: "/tmp/č" }, "call_1"), call("write", { text: "two\nlines" }, "call_2")],
  ],
  interleaved: true,
  usage: { input: 100, output: 7, cacheRead: 50, cacheWrite: 20 },
};

function recorded(vendor: Vendor): Uint8Array {
  const body = { model: "claude-sonnet-4-5", max_tokens: 1, messages: [], stream: true };
  return new TextEncoder().encode(vendor.frames(answer, { url: "/", headers: {}, text: "", body }).join(""));
}

const answering = (bytes: Uint8Array<ArrayBuffer>) => ({
  apiKey: "sk-test",
  fetch: async () => new Response(bytes, { headers: { "content-type": "text/event-stream" } }),
});

const SDKS = [
  {
    vendor: anthropic,
    reader: anthropicReply,
    iterate: (bytes: Uint8Array<ArrayBuffer>) =>
      new Anthropic(answering(bytes)).messages.create({
        ...{ model: "claude-opus-4-8", max_tokens: 1, stream: true },
        messages: [{ role: "user", content: "hi" }],
      }),
    noise: (data: string) => data.includes('"ping"'),
  },
  {
    vendor: openai,
    reader: openaiReply,
    iterate: (bytes: Uint8Array<ArrayBuffer>) =>
      new OpenAI(answering(bytes)).chat.completions.create({
        ...{ model: "gpt-5-mini", stream: true },
        messages: [{ role: "user", content: "hi" }],
      }),
    noise: (data: string) => data === "[DONE]",
  },
] as const;

function readAll(reader: ReplyReader, datas: readonly string[]) {
  const events: StreamEvent[] = [];
  for (const data of datas) reader.take(JSON.parse(data), events);
  reader.close();
  return { events, reply: reader.finish(events) };
}

describe.each(SDKS)("$vendor.name", ({ vendor, reader, iterate, noise }) => {
  const bytes = Uint8Array.from(recorded(vendor));

  test("our parser yields the same events as the SDK's iterator", async () => {
    const theirs: unknown[] = [];
    for await (const event of await iterate(bytes)) theirs.push(event);
    const ours: string[] = [];
    sseParser((data) => ours.push(data)).push(bytes);
    expect(ours.filter((data) => !noise(data)).map((data) => JSON.parse(data))).toEqual(theirs);
    expect(theirs.length).toBeGreaterThan(10);
  });

  test("our reader produces the same reply from both", async () => {
    const theirs: string[] = [];
    for await (const event of await iterate(bytes)) theirs.push(JSON.stringify(event));
    const whole: string[] = [];
    sseParser((data) => whole.push(data)).push(bytes);
    const ours = readAll(
      reader(),
      whole.filter((data) => data !== "[DONE]"),
    );
    expect(readAll(reader(), theirs)).toEqual(ours);
    expect(ours.reply.tool_calls.map(({ args }) => args)).toEqual([
      { path: "/tmp/č" },
      { text: "two\nlines" },
    ]);
  });
});
