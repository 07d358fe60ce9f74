import { describe, expect, test } from "vitest";
import { assistantMessage, type Message, toolMessage, userMessage } from "../../../src/agent/core/message.ts";
import { blocksOf, type SentBody } from "../../support/fake-provider/sent-body.ts";
import { ask, fakeProvider, lastBody, PROTOCOLS } from "./providers.ts";

const fake = fakeProvider();

const system = [
  { id: "who", text: "You are Skein.", cache: "static" },
  { id: "memory", text: "Ada likes tea.", cache: "semi" },
] as const;
const tools = ["glob", "read", "write"].map((name) => ({
  name,
  description: `To ${name}.`,
  parameters: { type: "object", properties: { path: { type: "string" } } },
}));

/** A conversation of several turns, with tools, cut ever later. */
function* growing(): Generator<Message[]> {
  const call = (id: string) => ({ id, name: "read", args: { path: id } });
  const all: Message[] = [
    userMessage("Look at a."),
    assistantMessage("I look.", call("call_a"), call("call_b")),
    toolMessage(call("call_b"), "content of b"),
    toolMessage(call("call_a"), "content of a"),
    assistantMessage("They are equal."),
    userMessage("And c?"),
    assistantMessage("", call("call_a")), // an id that comes again
    toolMessage(call("call_a"), "", "no such file"),
    assistantMessage("There is none."),
    userMessage("Thanks."),
  ];
  for (const end of [1, 4, 6, 8, 10]) yield all.slice(0, end);
}

describe.each(PROTOCOLS)("$name", ({ model }) => {
  test("repeats the same bytes from turn to turn, and adds new ones only after them", async () => {
    const asked = model(fake.current);
    let before = "";
    for (const messages of growing()) {
      await ask(asked, { messages, system, tools });
      const { messages: sent, ...head } = lastBody(fake.current);
      const now = withoutMarks(JSON.stringify({ ...head, messages: sent }));
      expect(now.startsWith(before)).toBe(true);
      expect(now.length).toBeGreaterThan(before.length);
      before = now.replace(/[\]}]+$/, "");
    }
  });
});

const withoutMarks = (json: string) => json.replaceAll(',"cache_control":{"type":"ephemeral"}', "");

describe("anthropic", () => {
  test("marks the ends of the constant parts: static and rarer system blocks, tools, and the conversation so far", async () => {
    const [anthropic] = PROTOCOLS;
    if (!anthropic) throw new Error("unreachable");
    const blocks = [
      ...system,
      { id: "rules", text: "Be kind.", cache: "static" },
      { id: "now", text: "It is Monday.", cache: "dynamic" },
    ] as const;
    await ask(anthropic.model(fake.current), {
      system: blocks,
      tools,
      messages: [
        userMessage([
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ]),
      ],
    });
    const body = lastBody(fake.current);
    const marks = (items: SentBody["system"] | SentBody["tools"] = []) =>
      [...(typeof items === "string" ? [] : items)].map((item) => item.cache_control !== undefined);
    expect(marks(body.system)).toEqual([false, true, true, false]);
    expect(marks(body.tools)).toEqual([false, false, true]);
    expect(marks(blocksOf(body.messages[0] ?? {}))).toEqual([false, true]);
  });
});
