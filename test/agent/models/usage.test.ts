import { describe, expect, test } from "vitest";
import { call, type Stop, say } from "../../support/fake-provider/script.ts";
import { ask, fakeProvider, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

describe.each(PROTOCOLS)("$name", ({ model, countsNoWrites = false }) => {
  test("counts all input, including the cached part", async () => {
    fake.current.enqueue({
      usage: { input: 1000, output: 42, cacheRead: 700, cacheWrite: 200 },
      blocks: [say("hi")],
    });
    const { reply } = await ask(model(fake.current));
    expect(reply.usage).toEqual({
      input_tokens: 1000,
      output_tokens: 42,
      cache_read_tokens: 700,
      cache_write_tokens: countsNoWrites ? 0 : 200,
    });
  });

  test.each<[Stop, string]>([
    ["end_turn", "end_turn"],
    ["max_tokens", "max_tokens"],
    ["refusal", "refusal"],
    ["pause_turn", "end_turn"],
  ])("reports its stop reason: %s", async (stop, reason) => {
    fake.current.enqueue({ blocks: [say("hi")], stop });
    expect((await ask(model(fake.current))).reply.stop_reason).toBe(reason);
  });

  test("stops for tools if there are calls under any stop reason", async () => {
    fake.current.enqueue({ blocks: [call("read")], stop: "end_turn" });
    expect((await ask(model(fake.current))).reply.stop_reason).toBe("tool_use");
  });

  test("can omit everything", async () => {
    fake.current.enqueue({ blocks: [] });
    const { events, reply } = await ask(model(fake.current));
    expect(events).toEqual([]);
    expect(reply).toMatchObject({ content: "", tool_calls: [], reasoning: [], stop_reason: "end_turn" });
  });
});
