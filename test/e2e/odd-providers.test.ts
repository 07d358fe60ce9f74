// Providers whose replies break their protocol: numbers for texts, fractions of tokens, nothing at all. The thread stays
// readable, and the next message is answered.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Message } from "../../src/agent/core/message.ts";
import { RunRecord } from "../../src/agent/core/records.ts";
import { StreamEvent } from "../../src/protocol/event.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { isNightly } from "../support/seed.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";

/** Threads, and the most odd replies on each. */
const THREADS = isNightly ? 8 : 4;
const REPLIES = 6;

interface Odd {
  readonly id?: unknown;
  readonly name?: unknown;
  readonly args?: unknown;
  readonly usage?: unknown;
}

const WIRES = [
  { name: "anthropic", model: "claude-sonnet-4-5", path: "", reply: anthropicReply },
  { name: "openai", model: "gpt-5-mini", path: "/v1", reply: openaiReply },
] as const;

function openaiReply({ id, name, args, usage }: Odd): unknown[] {
  const tool_calls = [{ index: 0, id, function: { name, arguments: args } }];
  return [
    { choices: [{ delta: { content: "Let me see.", tool_calls } }] },
    { choices: [{ delta: {}, finish_reason: "tool_calls" }], usage },
    "[DONE]",
  ];
}

function anthropicReply({ id, name, args, usage }: Odd): unknown[] {
  return [
    { type: "message_start", message: { usage } },
    { type: "content_block_start", index: 0, content_block: { type: "tool_use", id, name, input: {} } },
    { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: args } },
    { type: "message_delta", delta: { stop_reason: "tool_use" }, usage },
    { type: "message_stop" },
  ];
}

/** A server on sqlite whose agent asks `wire`, and what reads all there is of its thread. */
async function serve(wire: (typeof WIRES)[number]) {
  const provider = await startFakeProvider();
  const agents = `
agents:
  assistant:
    model: { provider: ${wire.name}, model: ${wire.model}, base_url: "${provider.url}${wire.path}", api_key: k }
    hooks: { retry: { attempts: 1 } }
`;
  const { url } = await startServer({ agents, realModels: true, config: { store: "sqlite" } });
  return { provider, talk, readAll };

  async function talk(input: string, thread = "t1"): Promise<StreamEvent[]> {
    const events = await (await post(`${url}/threads/${thread}/runs`, { input })).ended();
    for (const event of events) StreamEvent.parse(event);
    return events;
  }

  /** Fails unless every route that reads the thread answers 200. */
  async function readAll(thread = "t1") {
    const read = async (path: string) => {
      const response = await fetch(url + path);
      expect({ path, status: response.status }).toEqual({ path, status: 200 });
      return (await response.json()) as { items: unknown[] };
    };
    const at = `/threads/${thread}`;
    const runs = await read(`${at}/runs?limit=100`);
    for (const { id } of RunRecord.array().parse(runs.items)) {
      RunRecord.parse(await read(`${at}/runs/${id}`));
      await read(`${at}/runs/${id}/trace`);
    }
    for (const path of ["/state", "/usage", ""]) await read(at + path);
    for (const path of ["/usage", "/threads"]) await read(path);
    return Message.array().parse((await read(`${at}/messages`)).items);
  }
}

async function closing(provider: FakeProvider, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } finally {
    await provider.close();
  }
}

const HUGE = 1e300;
const USAGES: readonly [string, object][] = [
  ["no count of the answer", { prompt_tokens: 7, input_tokens: 7 }],
  ["parts of tokens", { prompt_tokens: 1.5, completion_tokens: 0.5, input_tokens: 1.5, output_tokens: 0.5 }],
  ["less than nothing", { prompt_tokens: -5, completion_tokens: -1, input_tokens: -5, output_tokens: -1 }],
  ["more than there can be", { prompt_tokens: HUGE, completion_tokens: HUGE, input_tokens: HUGE }],
  ["texts", { prompt_tokens: "7", completion_tokens: "many", input_tokens: "7", output_tokens: {} }],
];
const CALLS: readonly [string, Odd][] = [
  ["a number for its name", { id: "a", name: 7, args: "{}" }],
  ["a number for its id", { id: 12, name: "read", args: "{}" }],
  ["no name", { id: "a", args: "{}" }],
  ["no id", { name: "read", args: "{}" }],
  ["a map for its name and a list for its id", { id: [1], name: { read: true }, args: "{}" }],
  ["a very long name and id", { id: "i".repeat(100_000), name: "n".repeat(100_000), args: "{}" }],
  ["arguments that are a number", { id: "a", name: "read", args: 5 }],
  ["arguments that are a map", { id: "a", name: "read", args: { path: "a.txt" } }],
  [
    "arguments nested without end",
    { id: "a", name: "read", args: `{"a":${"[".repeat(5000)}${"]".repeat(5000)}}` },
  ],
];

describe.each(WIRES)("a provider on the wire of $name", (wire) => {
  test("leaves readable threads if its counts and calls break the protocol", async () => {
    const { provider, talk, readAll } = await serve(wire);
    const usages = USAGES.map(
      ([what, usage]) => [what, { id: "a", name: "nope", args: "{}", usage }] as const,
    );
    await closing(provider, async () => {
      for (const [what, odd] of [...usages, ...CALLS]) {
        const thread = what.replaceAll(" ", "-");
        provider.enqueue({ raw: wire.reply(odd) });
        expect((await talk("hello", thread)).at(-1), what).toMatchObject({ data: { status: "success" } });
        const messages = await readAll(thread);
        expect(
          messages.map(({ role }) => role),
          what,
        ).toEqual(["user", "assistant", "tool", "assistant"]);
        expect((await talk("and now?", thread)).at(-1), what).toMatchObject({ data: { status: "success" } });
        await readAll(thread);
      }
    });
  });

  test("leaves a readable thread for any JSON that it sends as counts and calls", async () => {
    const { provider, talk, readAll } = await serve(wire);
    let threads = 0;
    const anyReplies = fc.array(oddities, { minLength: 3, maxLength: REPLIES });
    const isReadable = fc.asyncProperty(anyReplies, async (replies) => {
      const thread = `t${++threads}`;
      for (const odd of replies) {
        provider.enqueue({ raw: wire.reply(odd) });
        await talk("go", thread);
        await readAll(thread);
      }
      expect((await talk("and now?", thread)).at(-1)).toMatchObject({ data: { status: "success" } });
    });
    await closing(provider, () => fc.assert(isReadable, { numRuns: THREADS, endOnFailure: true }));
  });
});

const count = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(null, undefined, "", "12", "x", 1e300, -1, 1.5, true, [], {}),
);
const name = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.integer(),
  fc.double(),
  fc.constantFrom(null, undefined, "read_file", "\ud800", {}, [], false),
);
const usage = fc.oneof(
  fc.record({
    prompt_tokens: count,
    completion_tokens: count,
    prompt_tokens_details: fc.oneof(count, fc.record({ cached_tokens: count, cache_write_tokens: count })),
    prompt_cache_hit_tokens: count,
    input_tokens: count,
    output_tokens: count,
    cache_read_input_tokens: count,
    cache_creation_input_tokens: count,
  }),
  fc.jsonValue(),
);
/** Without what ids of compatible servers are made of: such an id goes back as it came, and the strict wires refuse it. */
const id = name.map((each) => {
  if (typeof each === "number") return Math.round(each % 1e6);
  return typeof each === "string" ? each.replaceAll(/[.:+/=]/g, "") : each;
});
const oddities: fc.Arbitrary<Odd> = fc.record({
  id,
  name,
  args: fc.oneof(fc.json(), fc.string(), fc.jsonValue()),
  usage,
});
