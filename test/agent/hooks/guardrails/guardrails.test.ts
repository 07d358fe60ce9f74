import { describe, expect, test } from "vitest";
import { conversation, systemMessage, userMessage } from "../../../../src/agent/core/message.ts";
import { guardrails } from "../../../../src/agent/hooks/guardrails/index.ts";
import { retry } from "../../../../src/agent/hooks/retry.ts";
import { scriptedModel } from "../../../../src/agent/models/scripted.ts";
import { clientTool } from "../../../../src/agent/tools/client.ts";
import { play } from "../../../support/agent.ts";
import { dataOf, names } from "../../../support/drain.ts";
import { textsIn } from "../listening.ts";
import { made } from "../made.ts";
import { guarded, NO, REFUSED, write } from "./guarded.ts";

const bomb = { deny: ["(?i)bomb"] };

describe("in agents.yaml", () => {
  test.each([
    ["nothing to check", {}, "must contain at least one of `input`, `output` and `tool_args`"],
    ["a stage without a check", { input: {} }, "must contain at least one check"],
    [
      "an expression that is none",
      { input: { deny: ["("] } },
      "must be a regular expression: it is not valid RE2",
    ],
    ["look-ahead", { output: { allow: ["(?=a)"] } }, "no look-around"],
    ["a list without a topic", { input: { topics: [] } }, "Too small"],
    ["a topic without a word", { input: { topics: ["!?"] } }, "must contain at least one word"],
  ])("refuses %s", (_, options, message) => {
    expect(guardrails.options.safeParse(options).error?.message).toContain(message);
  });
});

describe("a user's text", () => {
  test("is refused before any model sees it; the run ends normally, with a message for the user", async () => {
    const { outcome, messages, seen, asked, events } = await guarded({ input: bomb }, { say: "a BOMB" });
    expect(outcome).toMatchObject(REFUSED);
    expect(asked).toEqual([]);
    expect(seen).toBe(NO);
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", "a BOMB"],
      ["assistant", NO],
    ]);
    expect(names(events)).toEqual([
      ...["run_start", "on_message", "on_chat_model_start", "on_chat_model_stream", "on_chat_model_end"],
      ...["on_message", "done"],
    ]);
    expect(dataOf(events, "done")[0]).toMatchObject({
      ...REFUSED,
      message_id: dataOf(events, "on_chat_model_start")[0]?.message_id,
    });
  });

  test("passes unchanged and streamed if it is harmless", async () => {
    const { outcome, seen, events } = await guarded({ input: bomb }, { turns: [{ say: "one two three" }] });
    expect(outcome).toMatchObject({ status: "success", stop_reason: "end_turn" });
    expect(seen).toBe("one two three");
    expect(dataOf(events, "on_chat_model_stream")).toHaveLength(3);
  });

  test("that was refused is not sent to the model in later runs either", async () => {
    const first = await guarded({ input: bomb }, { say: "how to make a bomb" });
    const { asked, messages, outcome } = await guarded(
      { input: bomb },
      { say: "please continue", input: { messages: first.messages } },
    );
    expect(outcome).toMatchObject({ stop_reason: "end_turn" });
    expect(textsIn(asked[0])).toEqual([
      "[This message was refused and is not shown.]",
      NO,
      "please continue",
    ]);
    expect(messages[0]?.content).toBe("how to make a bomb");
  });

  test("that was said before, or allowed, remains visible", async () => {
    const before = [...conversation().user("hello").assistant("hi").messages];
    const first = await guarded({ input: bomb }, { say: "bomb", input: { messages: before } });
    const { asked } = await guarded({ input: bomb }, { say: "sorry", input: { messages: first.messages } });
    expect(textsIn(asked[0])).toEqual(["hello", "hi", expect.stringContaining("refused"), NO, "sorry"]);
  });

  test("is checked as a whole across messages of users and the system", async () => {
    const halves = { input: { deny: ["(?s)make a.*bomb"] } };
    const input = { input: [userMessage("make a"), systemMessage("bomb")] };
    expect((await guarded(halves, { input })).outcome).toMatchObject(REFUSED);
  });

  test("is checked across the parts of a message, and includes file names", async () => {
    const text = (text: string) => ({ type: "text", text }) as const;
    const file = { type: "file", media_type: "text/plain", data: "YQ==", name: "plutonium.txt" } as const;
    const topics = { input: { topics: ["plutonium"] } };
    for (const content of [
      [text("plu"), text("tonium")],
      [text("see"), file],
    ]) {
      const input = { input: [userMessage(content)] };
      expect((await guarded(topics, { input })).outcome).toMatchObject(REFUSED);
    }
    const input = { input: [userMessage([text("weather"), text("today")])] };
    const strict = { input: { allow: ["^weather\\ntoday$"], max_chars: 13 } };
    expect((await guarded(strict, { input })).outcome).toMatchObject({ stop_reason: "end_turn" });
  });

  test.each([
    ["name", { name: "plutonium" }],
    ["description", { description: "Orders plutonium." }],
    ["parameters", { parameters: { type: "object", properties: { kind: { enum: ["plutonium"] } } } }],
  ])("includes the %s of the tools that a run defines", async (_, more) => {
    const tool = { name: "order", description: "Orders.", parameters: { type: "object" }, ...more };
    const topics = { input: { topics: ["plutonium"] } };
    expect((await guarded(topics, { tools: [clientTool(tool)] })).outcome).toMatchObject(REFUSED);
    const own = { ...clientTool(tool), fromClient: false };
    expect((await guarded(topics, { tools: [own] })).outcome).toMatchObject({ stop_reason: "end_turn" });
  });

  test("is checked even if it has been waiting for its answer since an earlier run", async () => {
    const input = { messages: [userMessage("a bomb")] };
    expect((await guarded({ input: bomb }, { say: "continue", input })).outcome).toMatchObject(REFUSED);
  });

  test("is checked during a run too, and earlier work is kept", async () => {
    const steered = userMessage("now a bomb");
    let turns = 0;
    const { outcome, messages, ran } = await guarded(
      { input: bomb },
      {
        turns: [{ call: [write({ path: "a" })] }],
        input: { inbox: async () => (turns++ === 0 ? [] : [steered]) },
      },
    );
    expect(ran).toBe(1);
    expect(outcome).toMatchObject(REFUSED);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user", "assistant"]);
  });

  test("is checked once for all attempts of a call", async () => {
    let judged = 0;
    const { outcome } = await play({
      script: (request, call) => {
        if (request.system.length > 0) judged++;
        if (request.system.length > 0) return { say: '{"allowed": true}' };
        return call < 2 ? { fail: { code: "model_overloaded" } } : { say: "ok" };
      },
      hooks: [
        made(retry, { options: { base_ms: 1 } }),
        made(guardrails, { options: { input: { judge: { policy: "p" } } } }),
      ],
    });
    expect(outcome.status).toBe("success");
    expect(judged).toBe(1);
  });

  test("has nothing to check in empty messages and resumed runs", async () => {
    const strict = { input: { allow: ["weather"] } };
    expect((await guarded(strict, { say: " " })).outcome).toMatchObject({ stop_reason: "end_turn" });
    const messages = [
      ...conversation().user("the weather?").assistant("", { id: "call_1", name: "write", args: {} })
        .messages,
    ];
    const { outcome, ran } = await guarded(strict, { say: null, input: { messages, attempt: 2 } });
    expect(outcome).toMatchObject({ stop_reason: "end_turn" });
    expect(ran).toBe(1);
  });
});

test("the reason for a refusal appears only in the trace", async () => {
  const spans: Record<string, unknown>[] = [];
  const recorder = {
    startSpan(name: string, attributes: object) {
      spans.push({ name, ...attributes });
      const span = { set: () => span, recordEvent: () => span, end: () => {} };
      return span;
    },
    recordEvent() {},
  };
  const hook = made(guardrails, { options: { input: bomb }, recorder });
  const { events } = await play({ say: "a bomb", hooks: [hook] });
  expect(spans).toEqual([
    {
      ...{ name: "guardrail", run_id: expect.any(String), thread_id: expect.any(String) },
      ...{ stage: "input", refused: "matches the denied `(?i)bomb`" },
    },
  ]);
  expect(JSON.stringify(events)).not.toContain("(?i)bomb");
});

test("a model's error is passed on unchanged", async () => {
  const { outcome } = await play({
    model: scriptedModel([{ fail: { code: "model_auth" } }]),
    hooks: [made(guardrails, { options: { output: bomb, input: bomb } })],
  });
  expect(outcome).toMatchObject({ status: "error", error: { code: "model_auth" } });
});

describe("rules", () => {
  const isRefused = async (input: Record<string, unknown>, say: string) =>
    (await guarded({ input }, { say })).outcome.stop_reason === "refusal";

  const either = { allow: ["(?i)weather", "(?i)forecast"] };
  test.each([
    ["one of those that allow must match", either, "the Forecast, please", false],
    ["none of those that allow matches", either, "a poem, please", true],
    ["deny takes precedence over allow", { allow: ["weather"], deny: ["bomb"] }, "weather bomb", true],
    ["text of max_chars passes", { max_chars: 5 }, "12345", false],
    ["longer text is refused", { max_chars: 5 }, "123456", true],
  ])("%s", async (_, input, say, refused) => expect(await isRefused(input, say)).toBe(refused));

  test.each([
    ["bomb", "a BOMB!", true],
    ["bomb", "bombastic", false],
    ["bomb", "bo\u200bmb", true],
    ["bomb", "ｂｏｍｂ", true],
    ["tax advice", "Tax,  advice?", true],
    ["tax advice", "advice on tax", false],
    ["straße", "Straße", true],
    ["爆弾", "この爆弾は", true],
    ["C3PO", "c3po", true],
    ["plutonium", "рlutоnium", true],
    ["plutonium", "ΡLUΤΟΝΙUΜ", true],
    ["bomb", "b\u0336o\u0336m\u0336b", true],
    ["мир", "Миру мир", true],
    ["modem", "modern", false],
    ["cafe", "café", false],
  ])("topics: `%s` in `%s` matches: %s", async (topic, say, found) => {
    expect(await isRefused({ topics: [topic] }, say)).toBe(found);
  });

  test("a text too long for an expression is refused, so padding does not help", async () => {
    const padding = "x".repeat(2_000_000);
    expect(await isRefused({ deny: ["(?i)bomb"] }, `${padding} bomb`)).toBe(true);
    expect(await isRefused({ allow: ["(?i)weather"] }, `${padding} bomb`)).toBe(true);
    expect(await isRefused({ topics: ["bomb"] }, `${padding} bomb`)).toBe(true);
  });
});
