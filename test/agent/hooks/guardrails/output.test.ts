import { describe, expect, test } from "vitest";
import type { Hook } from "../../../../src/agent/core/hook.ts";
import { guardrails } from "../../../../src/agent/hooks/guardrails/index.ts";
import { retry } from "../../../../src/agent/hooks/retry.ts";
import { play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { textsIn } from "../listening.ts";
import { made } from "../made.ts";
import { guarded, NO, REFUSED, write } from "./guarded.ts";

describe("the model's output", () => {
  const secret = { output: { deny: ["hunter2"] } };

  test("is never sent if refused: no delta, message, thought or call", async () => {
    const { outcome, told, seen, ran, last, events } = await guarded(secret, {
      turns: [{ think: "ah, hunter2", say: "it is hunter2", call: [write({ text: "hunter2" })] }],
    });
    expect(told).not.toContain("hunter2");
    expect(outcome).toMatchObject(REFUSED);
    expect([seen, last?.content, ran]).toEqual([NO, NO, 0]);
    const [end] = dataOf(events, "on_chat_model_end");
    expect(end).toMatchObject({ stop_reason: "refusal", message_id: last?.id });
    expect(end?.usage?.output_tokens).toBeGreaterThan(0);
  });

  test("is sent as a whole if it passes, after the check", async () => {
    const { seen, events, last } = await guarded(secret, {
      turns: [{ think: "hm well", say: "one two three" }],
    });
    expect(seen).toBe("one two three");
    expect(dataOf(events, "on_chat_model_stream")).toEqual([
      { reasoning_delta: "hm well" },
      { delta: "one two three" },
    ]);
    expect(last).toMatchObject({ content: "one two three", model: "scripted:test" });
  });

  test("is checked in every step, and earlier calls remain done", async () => {
    const { outcome, ran, told } = await guarded(secret, {
      turns: [{ say: "writing", call: [write({ path: "a" })] }, { say: "hunter2" }],
    });
    expect(ran).toBe(1);
    expect(outcome).toMatchObject(REFUSED);
    expect(told).not.toContain("hunter2");
  });

  test("reaches viewers with its calls as the model wrote it", async () => {
    const calls = [write({ a: 1 }, { id: "c1" }), write({}, { id: "c2", malformed: "{broken" })];
    const { events, messages } = await guarded(secret, { turns: [{ call: calls }] });
    expect(dataOf(events, "on_chat_model_stream").slice(0, 2)).toEqual([
      { tool_call: { index: 0, id: "c1", name: "write", args_delta: '{"a":1}' } },
      { tool_call: { index: 1, id: "c2", name: "write", args_delta: "{broken" } },
    ]);
    expect(messages.filter(({ role }) => role === "tool")).toHaveLength(2);
  });

  test("is held back for a failed attempt too, and the next attempt is sent", async () => {
    const { seen, told } = await play({
      script: [{ say: "hunter", fail: { code: "model_overloaded" } }, { say: "fine" }],
      hooks: [made(retry, { options: { base_ms: 1 } }), made(guardrails, { options: secret })],
    }).then(({ events }) => ({ seen: dataOf(events, "on_chat_model_stream"), told: JSON.stringify(events) }));
    expect(seen).toEqual([{ delta: "fine" }]);
    expect(told).not.toContain("hunter");
  });

  test("is never sent if a hook of a program replaces it with another answer", async () => {
    const again: Hook = {
      name: "again",
      async *wrapModelCall(request, next) {
        yield* next(request);
        return yield* next(request);
      },
    };
    const { seen, events } = await guarded(secret, {
      turns: [{ say: "first" }, { say: "second" }],
      hooks: [again],
    });
    expect(seen).toBe("second");
    const names = events.map(({ event }) => event).filter((event) => event.startsWith("on_chat_model"));
    expect(names).toEqual([
      ...["on_chat_model_start", "on_chat_model_end"],
      ...["on_chat_model_start", "on_chat_model_stream", "on_chat_model_end"],
    ]);
  });

  test("can consider allowed topics in its thinking, but not mention denied ones", async () => {
    const weather = { output: { allow: ["weather"], topics: ["bomb"] } };
    const turns = [{ think: "what else?", say: "the weather is fine" }];
    expect((await guarded(weather, { turns })).outcome).toMatchObject({ stop_reason: "end_turn" });
    const denied = [{ think: "a bomb?", say: "the weather is fine" }];
    expect((await guarded(weather, { turns: denied })).outcome).toMatchObject(REFUSED);
  });

  test("is not the user's fault if refused, so the question remains for later runs", async () => {
    const first = await guarded(secret, { say: "what is it?", turns: [{ say: "hunter2" }] });
    const { asked } = await guarded(secret, { say: "why?", input: { messages: first.messages } });
    expect(textsIn(asked[0])).toEqual(["what is it?", NO, "why?"]);
  });

  test("is not refused if it is empty", async () => {
    const { outcome } = await guarded({ output: { allow: ["weather"] } }, { turns: [{ say: "" }] });
    expect(outcome).toMatchObject({ stop_reason: "end_turn" });
  });

  test("is abandoned if the run is cancelled", async () => {
    const cancel = new AbortController();
    const { outcome } = await play({
      script: [{ say: "never heard", delay_ms: 60_000 }],
      hooks: [made(guardrails, { options: secret })],
      input: { signal: cancel.signal },
      onEvent: ({ event }) => event === "on_chat_model_start" && setImmediate(() => cancel.abort()),
    });
    expect(outcome.status).toBe("cancelled");
  });
});

describe("the arguments of tool calls", () => {
  const etc = { tool_args: { deny: ["(?m)^path: /etc/"] } };

  test("end the run if refused, before any of the message's calls is run or shown", async () => {
    const { outcome, ran, told, messages } = await guarded(etc, {
      turns: [{ say: "on it", call: [write({ path: "/tmp/a" }), write({ path: "/etc/passwd" })] }],
    });
    expect(outcome).toMatchObject(REFUSED);
    expect(ran).toBe(0);
    expect(told).not.toContain("/etc/passwd");
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  });

  test("run if they are harmless", async () => {
    const { outcome, ran } = await guarded(etc, {
      turns: [{ call: [write({ path: "/tmp/a" }), write({ path: "/tmp/b" })] }],
    });
    expect(outcome).toMatchObject({ stop_reason: "end_turn" });
    expect(ran).toBe(2);
  });

  test.each<[string, Record<string, unknown>]>([
    ["in a list", { files: [{ path: "/etc/passwd" }] }],
    ["deep down", JSON.parse(`{"path":${"[".repeat(1000)}"/etc/passwd"${"]".repeat(1000)}}`)],
    ["escaped in JSON", JSON.parse('{"path":"\\u002fetc/passwd"}')],
    ["behind a line break", { text: "x\npath: /etc/passwd" }],
    ["in letters that look alike", { path: "／etc／passwd" }],
    ["with invisible characters", { path: "/e\u200btc/\u00adpasswd" }],
  ])("match %s", async (_, args) => {
    expect((await guarded(etc, { turns: [{ call: [write(args)] }] })).outcome).toMatchObject(REFUSED);
  });

  test("match as keys, and in text that is not JSON", async () => {
    const rule = { tool_args: { deny: ["x-secret"] } };
    const nested = write({ headers: { "x-secret": {} } });
    expect((await guarded(rule, { turns: [{ call: [nested] }] })).outcome).toMatchObject(REFUSED);
    const broken = write({}, { malformed: "{x-secret" });
    expect((await guarded(rule, { turns: [{ call: [broken] }] })).outcome).toMatchObject(REFUSED);
  });

  test("are checked separately from the model's text", async () => {
    const { outcome } = await guarded(etc, { turns: [{ say: "path: /etc/passwd" }] });
    expect(outcome).toMatchObject({ stop_reason: "end_turn" });
  });
});
