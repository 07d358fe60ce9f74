import { describe, expect, test } from "vitest";
import type { StreamEvent } from "../../../src/protocol/event.ts";
import { textSeen } from "../../support/drain.ts";
import { say } from "../../support/fake-provider/script.ts";
import { ask, fakeProvider, hear, lastBody, PROVIDERS, request } from "./providers.ts";

const fake = fakeProvider();

describe.each(PROVIDERS)("$name", ({ name, model, keyHeader = "authorization" }) => {
  test("streams the text piece by piece and returns all of it", async () => {
    fake.current.enqueue({ blocks: [say("Good morning, dear world")] });
    const { events, reply } = await ask(model(fake.current));
    expect(events).toEqual(
      ["Good ", "morning, ", "dear ", "world"].map((delta) => ({
        ...{ event: "on_chat_model_stream", data: { delta } },
      })),
    );
    expect(reply).toMatchObject({ content: "Good morning, dear world", tool_calls: [], reasoning: [] });
    expect(reply.stop_reason).toBe("end_turn");
  });

  test("keeps every character, in any language, however packets split it", async () => {
    const text = "žluťoučký kůň 🐎 漢字 \r\n\n data: x\u2028\u0000 end";
    fake.current.enqueue({ blocks: [say(text)], batch: 3 });
    const { events, reply } = await ask(model(fake.current));
    expect(reply.content).toBe(text);
    expect(textSeen(events)).toBe(text);
  });

  test("gives its deltas to a sink, and yields the others", async () => {
    fake.current.enqueue({ blocks: [say("Good morning, dear world")] });
    const asked = model(fake.current);
    const taken: StreamEvent[] = [];
    const take = (delta: StreamEvent) => taken.length < 2 && taken.push(delta) > 0;
    const { events, reply } = await hear(asked.stream(request(asked), take));
    expect([textSeen(taken), textSeen(events)]).toEqual(["Good morning, ", "dear world"]);
    expect(reply.content).toBe("Good morning, dear world");
  });

  test("serves readers one after the other over one connection", async () => {
    const asked = model(fake.current);
    await ask(asked);
    const before = fake.current.connections();
    for (let turn = 0; turn < 5; turn++) await ask(asked);
    expect(fake.current.connections()).toBe(before);
  });

  test("sends the key where the provider expects it", async () => {
    await ask(model(fake.current));
    const sent = fake.current.requests().at(-1)?.headers[keyHeader];
    expect(sent).toBe(`${keyHeader === "authorization" ? "Bearer " : ""}sk-test-0123456789abcdef`);
  });

  test("sends the most constant system blocks first", async () => {
    const system = [
      { id: "now", text: "It is Monday.", cache: "dynamic" },
      { id: "who", text: "You are Skein.", cache: "static" },
      { id: "memory", text: "Ada likes tea.", cache: "semi" },
      { id: "rules", text: "Be kind.", cache: "static" },
      { id: "none", text: " ", cache: "semi" },
    ] as const;
    await ask(model(fake.current), { system });
    const said = JSON.stringify(lastBody(fake.current));
    const order = ["You are Skein.", "Be kind.", "Ada likes tea.", "It is Monday."].map((text) =>
      said.indexOf(text),
    );
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order.every((at) => at > 0)).toBe(true);
  });

  test("sends a prompt of a single system block", async () => {
    await ask(model(fake.current), { system: [{ id: "who", text: "You are Skein.", cache: "static" }] });
    expect(JSON.stringify(lastBody(fake.current))).toContain("You are Skein.");
  });

  test("prefers a request's settings over the model's", async () => {
    const asked = model(fake.current, { max_tokens: 100, temperature: 0.5 });
    await ask(asked, { settings: { max_tokens: 200 } });
    const limit = name === "azure" ? "max_completion_tokens" : "max_tokens";
    expect(lastBody(fake.current)).toMatchObject({ [limit]: 200, temperature: 0.5 });
  });

  test("opens no connection before its answer is read", () => {
    const before = fake.current.connections();
    model(fake.current).stream(request(model(fake.current)));
    expect(fake.current.connections()).toBe(before);
  });
});
