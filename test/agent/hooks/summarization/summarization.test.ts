import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  conversation,
  estimateTokens,
  NO_USAGE,
  systemMessages,
  textOf,
  userMessage,
} from "../../../../src/agent/core/message.ts";
import { cutPoint } from "../../../../src/agent/hooks/summarization/projection.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import { type Play, plainTool, play } from "../../../support/agent.ts";
import { dataOf, textSeen } from "../../../support/drain.ts";
import { compacting, full, listening, promptOf, talk, WINDOW } from "./compacting.ts";

describe("a conversation that fits", () => {
  test("is sent unchanged, at no cost", async () => {
    const { model, asked, summaries } = listening();
    const messages = talk(10, 450);
    const { state } = await play({ model, hooks: [compacting()], input: { messages } });
    expect(asked[0]?.messages.slice(0, -1)).toEqual(messages);
    expect(summaries).toEqual([]);
    expect(state.size).toBe(0);
  });

  test.each([
    ["not summarised, however long it seems", full(), { input_tokens: 800 }, 0],
    ["summarised, however short it seems", talk(10, 450), { input_tokens: 8600 }, 1],
    ["summarised with the last answer", talk(10, 450), { input_tokens: 4600, output_tokens: 4000 }, 1],
  ])("is %s, if the provider's own count says so", async (_, messages, counts, count) => {
    const { model, summaries } = listening();
    const last = { ...assistantMessage("counted"), usage: { ...NO_USAGE, ...counts } };
    await play({ model, hooks: [compacting()], input: { messages: [...messages, last] } });
    expect(summaries).toHaveLength(count);
  });

  test("can contain an image, which does not count like text of its length", async () => {
    const image = { type: "image" as const, media_type: "image/png" as const, data: "A".repeat(400_000) };
    const { model, summaries } = listening();
    await play({
      ...{ model, hooks: [compacting()] },
      input: { messages: [...talk(6, 450), userMessage([image]), ...talk(1, 10)] },
    });
    expect(summaries).toEqual([]);
  });

  test("is measured together with the system prompt and the tools", async () => {
    const messages = talk(10, 450);
    const system = [{ id: "s", text: "x".repeat(16_000), cache: "static" as const }];
    const { model, summaries } = listening();
    await play({ model, system, hooks: [compacting()], input: { messages } });
    expect(summaries).toHaveLength(1);
  });
});

describe("a conversation that has grown too long", () => {
  const compacted = async (more: Play = {}, listener = listening()) => {
    const played = await play({
      model: listener.model,
      hooks: [compacting()],
      input: { messages: full() },
      ...more,
    });
    return { ...played, ...listener };
  };

  test("reaches the model as a summary and its newest messages", async () => {
    const { asked } = await compacted();
    const [first, ...rest] = asked[0]?.messages ?? [];
    expect(first?.role).toBe("user");
    expect(textOf(first?.content ?? "")).toContain(
      "<conversation_summary>\nSUMMARY\n</conversation_summary>",
    );
    expect(rest[0]?.role).toBe("user");
    expect(rest.at(-1)?.content).toBe("hello");
    expect(rest.length).toBeGreaterThanOrEqual(2);
    expect(estimateTokens(asked[0]?.messages ?? [])).toBeLessThan(WINDOW / 2);
  });

  test("remains complete in the thread, with the summary next to it", async () => {
    const messages = full();
    const played = await compacted({ input: { messages } });
    expect(played.messages.slice(0, messages.length)).toEqual(messages);
    expect(played.messages).toHaveLength(messages.length + 2);
    expect(played.state.get("summary")).toEqual({
      up_to: expect.stringMatching(/^msg_/),
      seen: played.messages.at(-2)?.id,
      text: "SUMMARY",
      tokens_before: expect.any(Number),
    });
  });

  test("is reported to viewers, who see nothing of the summarizing call", async () => {
    const { events } = await compacted();
    expect(dataOf(events, "warning").map(({ code }) => code)).toEqual(["context_compacted"]);
    expect(dataOf(events, "on_chat_model_start")).toHaveLength(1);
    expect(textSeen(events)).toBe("ok");
  });

  test("counts the tokens of its summary", async () => {
    const usage = { input_tokens: 700, output_tokens: 70 };
    const { events } = await compacted({}, listening({ summary: { say: "S", usage }, turns: [{ usage }] }));
    expect(dataOf(events, "done")[0]?.usage).toMatchObject({ input_tokens: 1400, output_tokens: 140 });
  });

  test("is summarised once, not in every turn", async () => {
    const listener = listening();
    const first = await compacted({}, listener);
    const { messages, state } = first;
    const second = await compacted({ input: { messages, state } }, listener);
    await compacted({ input: second }, listener);
    expect(listener.summaries).toHaveLength(1);
    expect(textOf(listener.asked[2]?.messages[0]?.content ?? "")).toContain("SUMMARY");
  });

  test("is measured again after a summary instead of by earlier counts", async () => {
    const usage = { ...NO_USAGE, input_tokens: 9000 };
    const messages = full().map((message) =>
      message.role === "assistant" ? { ...message, usage } : message,
    );
    // Even if no answer has followed the summary.
    for (const turns of [[], [{ fail: { code: "model_rejected" } } as const]]) {
      const listener = listening({ turns });
      const { messages: after, state } = await compacted({ input: { messages } }, listener);
      await compacted({ input: { messages: after, state } }, listener);
      expect(listener.summaries).toHaveLength(1);
    }
  });

  test("is summarised again after it has grown, and the new summary includes the old one", async () => {
    const listener = listening({ summary: (nth) => ({ say: `SUMMARY ${nth}` }) });
    const { messages, state } = await compacted({}, listener);
    const grown = [...messages, ...talk(18, 450, "new")];
    const played = await compacted({ input: { messages: grown, state } }, listener);
    expect(listener.summaries).toHaveLength(2);
    expect(promptOf(listener.summaries[1])).toContain("<earlier_summary>\nSUMMARY 1\n</earlier_summary>");
    expect(promptOf(listener.summaries[1])).not.toContain("q0 word");
    const first = textOf(listener.asked[1]?.messages[0]?.content ?? "");
    expect(first).toContain("SUMMARY 2");
    expect(first).not.toContain("SUMMARY 1");
    expect(played.state.get("summary")).toMatchObject({ text: "SUMMARY 2" });
  });

  test("drops a summary of messages that were deleted", async () => {
    const listener = listening();
    const { state } = await compacted({}, listener);
    const messages = talk(1, 10);
    await compacted({ input: { messages, state } }, listener);
    expect(listener.asked[1]?.messages.slice(0, -1)).toEqual(messages);
  });

  test("keeps its system messages unchanged", async () => {
    const messages = [...conversation().system("Answer in French.").messages, ...full()];
    const { asked } = await compacted({ input: { messages } });
    expect(asked[0]?.messages[0]).toMatchObject({ role: "system", content: "Answer in French." });
    expect(textOf(asked[0]?.messages[1]?.content ?? "")).toContain("SUMMARY");
  });

  test("keeps the newest 16,000 characters of its system messages, each text once", async () => {
    const orders = ["old", "middle", "new"].map((name) => name.padEnd(8_000, "."));
    const talk = [...orders, ...orders.slice(-1)].reduce(
      (before, order) => before.system(order),
      conversation(),
    );
    const { asked } = await compacted({ input: { messages: [...talk.messages, ...full()] } });
    const kept = systemMessages(asked[0]?.messages ?? []).map(({ content }) => content);
    expect(kept).toEqual(orders.slice(1));
  });

  test("is not cut between a call and its result in a long sequence of tool calls", async () => {
    const read = plainTool("read_file", () => "x".repeat(3000));
    const turns: Turn[] = Array(30).fill({ call: [{ tool: "read_file" }, { tool: "read_file" }] });
    const listener = listening({ turns });
    const { outcome } = await compacted({ tools: [read], maxIterations: 0, input: {} }, listener);
    expect(outcome.status).toBe("success");
    expect(listener.summaries.length).toBeGreaterThan(1);
    expect(listener.summaries.length).toBeLessThan(15);
    for (const { messages } of listener.asked) {
      const calls = messages.flatMap((message) =>
        message.role === "assistant" ? (message.tool_calls ?? []) : [],
      );
      const results = messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []));
      expect(results).toEqual(calls.map(({ id }) => id));
      expect(estimateTokens(messages)).toBeLessThan(WINDOW);
    }
  });

  test("cannot close the summary's tags", async () => {
    const { asked } = await compacted({}, listening({ summary: { say: "a </conversation_summary> b" } }));
    const text = textOf(asked[0]?.messages[0]?.content ?? "");
    expect(text.match(/<\/conversation_summary>/g)).toHaveLength(1);
  });

  test("is not summarised if that would save next to nothing", async () => {
    const messages = [...talk(2, 100), userMessage("x".repeat(36_000))];
    const { summaries, asked } = await compacted({ input: { messages } });
    expect(summaries).toEqual([]);
    expect(asked[0]?.messages).toHaveLength(messages.length + 1);
  });

  test("has the results of its newest step shortened if they alone are too long, and in the next step too", async () => {
    const calls = Array.from({ length: 4 }, (_, n) => ({ id: `c${n}`, name: "execute", args: {} }));
    let step = conversation()
      .user("go")
      .assistant("", ...calls);
    for (const { id } of calls) step = step.tool(id, "execute", `${"x".repeat(30_000)}end`);
    // The provider counts only the shorter request.
    const usage = { input_tokens: 2000, output_tokens: 10 };
    const listener = listening({ turns: [{ say: "hm", call: [{ tool: "nothing" }], usage }] });
    const input = { messages: step.messages };
    const { asked, messages } = await compacted({ say: null, input }, listener);
    expect(asked).toHaveLength(2);
    for (const request of asked) expect(estimateTokens(request.messages)).toBeLessThan(WINDOW);
    expect(asked[0]?.messages.at(-1)?.content).toMatch(/^x+\n\[… \d+ characters left out …\]\nx+end$/);
    expect(messages[2]?.content).toHaveLength(30_003);
  });
});

const call = (id: string) => ({ id, name: "read_file", args: {} });
const PLENTY = 1_000_000;

/** A turn of the user with `steps` calls in it, and an answer. */
function turn(of: ReturnType<typeof conversation>, steps: number, name: string) {
  let turn = of.user(`request ${name}`);
  for (let step = 0; step < steps; step++)
    turn = turn.assistant("", call(`${name}${step}`)).tool(`${name}${step}`, "read_file", "x".repeat(400));
  return turn.assistant(`answer ${name}`);
}

describe("a conversation is cut", () => {
  const talk = ["a", "b", "c", "d", "e"].reduce((of, name) => turn(of, 2, name), conversation()).messages;

  test("between two turns, with at least the newest tenth kept", () => {
    expect(talk[cutPoint(talk, 0.1, PLENTY)]).toMatchObject({ role: "user", content: "request e" });
    expect(talk[cutPoint(talk, 0.3, PLENTY)]).toMatchObject({ role: "user", content: "request d" });
  });

  test("between two steps if the turn is too long to keep", () => {
    const { messages } = turn(turn(conversation(), 1, "a"), 50, "b");
    const at = cutPoint(messages, 0.1, 2000);
    expect(messages[at]).toMatchObject({ role: "assistant", tool_calls: [{ name: "read_file" }] });
    expect(messages.length - at).toBeGreaterThanOrEqual(Math.ceil(messages.length / 10));
    expect(messages.length - at).toBeLessThan(20);
  });

  test("later than the newest tenth if that part alone is too large", () => {
    const small = Array.from({ length: 18 }).reduce<ReturnType<typeof conversation>>(
      (of, _, n) => of.user(`q${n}`).assistant(`a${n}`),
      conversation(),
    );
    const { messages } = small.user("x".repeat(8000)).assistant("ok").user("more").assistant("ok");
    const kept = messages.slice(cutPoint(messages, 0.1, 1000));
    expect(kept.map(({ content }) => content)).toEqual(["ok", "more", "ok"]);
  });

  test("never between a call and its results, however little is kept", () => {
    const steps = turn(conversation(), 3, "a").assistant("", call("x"), call("y"));
    const { messages } = steps.tool("x", "read_file", "1").tool("y", "read_file", "2");
    for (let keep = 0.01; keep < 0.9; keep += 0.01)
      for (const room of [0, 100, PLENTY]) {
        const at = cutPoint(messages, keep, room);
        expect(messages[at]?.role).not.toBe("tool");
        expect(messages.length - at).toBeGreaterThanOrEqual(2);
      }
  });

  test("nowhere if there is nothing to cut", () => {
    expect(cutPoint([], 0.1, PLENTY)).toBe(0);
    expect(cutPoint(conversation().user("a").assistant("b").messages, 0.1, 0)).toBe(0);
    const { messages } = conversation()
      .assistant("", call("x"))
      .tool("x", "read_file", "1")
      .tool("y", "ls", "2");
    expect(cutPoint(messages, 0.1, 0)).toBe(0);
  });
});

describe("a request that is too long for the model", () => {
  const overflow: Turn = { fail: { code: "context_overflow" } };

  const overflowing = async (turns: Turn[], messages = talk(8, 450)) => {
    const listener = listening({ turns });
    const played = await play({ model: listener.model, hooks: [compacting()], input: { messages } });
    return { ...played, ...listener };
  };

  test("is retried with a summary even though it seemed to fit", async () => {
    const { outcome, events, asked, summaries } = await overflowing([overflow, { say: "ok" }]);
    expect(outcome.status).toBe("success");
    expect(summaries).toHaveLength(1);
    expect(dataOf(events, "warning").map(({ code }) => code)).toEqual(["context_compacted"]);
    const [first, second] = asked.map(({ messages }) => estimateTokens(messages));
    expect(second).toBeLessThan((first ?? 0) / 2);
  });

  test("is retried with a summary even if an earlier one failed", async () => {
    const summary = (nth: number): Turn =>
      nth === 1 ? { fail: { code: "model_rejected" } } : { say: "SUMMARY" };
    const listener = listening({ summary, turns: [overflow, { say: "ok" }] });
    const { outcome } = await play({
      ...{ model: listener.model, hooks: [compacting()], input: { messages: full() } },
    });
    expect(outcome.status).toBe("success");
    expect(promptOf(listener.asked[1])).toContain("SUMMARY");
  });

  test("teaches the run the actual limit", async () => {
    const step: Turn = { call: [{ tool: "execute" }] };
    const listener = listening({ turns: [overflow, step, step, step, step] });
    const execute = plainTool("execute", () => "x".repeat(4500));
    const { outcome } = await play({
      ...{ model: listener.model, tools: [execute], hooks: [compacting()] },
      input: { messages: talk(8, 450) },
    });
    expect(outcome.status).toBe("success");
    expect(listener.summaries.length).toBeGreaterThan(1);
    expect(listener.asked.length).toBeGreaterThan(1);
    for (const { messages } of listener.asked.slice(1)) expect(estimateTokens(messages)).toBeLessThan(3700);
  });

  test.each([
    ["fails if it is still too long", undefined, 2, 1],
    ["is not retried if nothing can be left out", [], 1, 0],
  ])("%s", async (_, messages, calls, count) => {
    const { outcome, asked, summaries } = await overflowing([overflow, overflow], messages);
    expect(outcome).toMatchObject({ status: "error", error: { code: "context_overflow" } });
    expect([asked.length, summaries.length]).toEqual([calls, count]);
  });
});
