import { describe, expect, test } from "vitest";
import type { Hook } from "../../../../src/agent/core/hook.ts";
import { conversation, estimateTokens, type Message } from "../../../../src/agent/core/message.ts";
import { timeout } from "../../../../src/agent/hooks/timeout.ts";
import type { Turn } from "../../../../src/agent/models/scripted.ts";
import { plainTool, play } from "../../../support/agent.ts";
import { dataOf } from "../../../support/drain.ts";
import { made } from "../made.ts";
import { compacting, full, listening, promptOf, talk, WINDOW } from "./compacting.ts";

describe("the summarizing call", () => {
  const summaryOf = async (messages: readonly Message[], listener = listening(), options = {}) => {
    const played = await play({ model: listener.model, hooks: [compacting(options)], input: { messages } });
    return { ...played, ...listener, prompt: promptOf(listener.summaries[0]) };
  };

  test("asks for fewer than 2,000 words in sections, and offers no tools and no output schema", async () => {
    const tools = [plainTool("read_file")];
    const output = { name: "answer", schema: { type: "object" } } as never;
    const asking: Hook = { name: "asking", modifyRequest: (request) => ({ ...request, output }) };
    const listener = listening();
    await play({ model: listener.model, hooks: [compacting(), asking], tools, input: { messages: full() } });
    const { summaries } = listener;
    const prompt = promptOf(summaries[0]);
    expect(listener.asked[0]).toHaveProperty("output");
    expect(summaries[0]).not.toHaveProperty("output");
    expect(prompt).toContain("2,000 words");
    expect(prompt.match(/^## .+$/gm)).toHaveLength(7);
    expect(summaries).toMatchObject([{ tools: [], messages: [{ role: "user" }] }]);
  });

  test("does not use the run's thinking budget", async () => {
    const listener = listening();
    const settings = { thinking: 20_000, max_tokens: 30_000, temperature: 1 };
    await play({ model: listener.model, hooks: [compacting()], input: { messages: full(), settings } });
    expect(listener.summaries[0]?.settings).toEqual({ temperature: 1, max_tokens: 2000 });
  });

  test("includes at most 2,000 characters of a written file", async () => {
    const content = `${"w".repeat(5000)}`;
    const write = { id: "w1", name: "write_file", args: { path: "/a.txt", content } };
    const messages = [
      ...conversation().user("write").assistant("", write).tool("w1", "write_file", "done").messages,
      ...talk(14, 450),
    ];
    const { prompt } = await summaryOf(messages, listening(), { trigger: 0.7 });
    expect(prompt).toContain("/a.txt");
    const run = prompt.match(/w{50,}/g)?.join("").length ?? 0;
    expect(run).toBeGreaterThan(1000);
    expect(run).toBeLessThanOrEqual(2000);
  });

  test("fits the window, however long the conversation is", async () => {
    const call = (n: number) => ({ id: `c${n}`, name: "execute", args: { command: "y".repeat(10_000) } });
    let long = conversation().user("z".repeat(100_000));
    for (let n = 0; n < 50; n++)
      long = long.assistant("", call(n)).tool(`c${n}`, "execute", "x".repeat(80_000));
    const { summaries, outcome } = await summaryOf(long.assistant("done").messages);
    expect(outcome.status).toBe("success");
    expect(estimateTokens(summaries[0]?.messages ?? [])).toBeLessThan(WINDOW * 0.8);
  });

  test("is made smaller if the provider counts more tokens than the estimate", async () => {
    const usage = { input_tokens: 36_000, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
    const messages = full().map((message) =>
      message.role === "assistant" ? { ...message, usage } : message,
    );
    const { summaries } = await summaryOf(messages);
    expect(estimateTokens(summaries[0]?.messages ?? [])).toBeLessThan((WINDOW / 4) * 0.8);
  });

  test("is retried with half of the text if it is too long for the model", async () => {
    const summary = (nth: number): Turn =>
      nth === 1 ? { fail: { code: "context_overflow" } } : { say: "SHORT" };
    const { summaries, state } = await summaryOf(full(), listening({ summary }));
    expect(summaries).toHaveLength(2);
    const [first = 0, second = 0] = summaries.map((request) => promptOf(request).length);
    expect(second).toBeLessThanOrEqual(first * 0.51);
    expect(state.get("summary")).toMatchObject({ text: "SHORT" });
  });

  test("limits the length of the summary", async () => {
    const { asked } = await summaryOf(full(), listening({ summary: { say: "blah ".repeat(20_000) } }));
    expect(estimateTokens(asked[0]?.messages ?? [])).toBeLessThan(WINDOW * 0.85);
  });

  test.each([
    ["fails", { fail: { code: "model_overloaded", message: "Busy." } }],
    ["finds both too long", { fail: { code: "context_overflow" } }],
    ["says nothing", { say: " " }],
    ["is refused", { say: "No.", stop_reason: "refusal" }],
  ] satisfies [string, Turn][])("leaves the messages unchanged if it %s", async (_, summary) => {
    const messages = full();
    const { asked, events, outcome, state } = await summaryOf(messages, listening({ summary }));
    expect(outcome.status).toBe("success");
    expect(asked[0]?.messages.slice(0, -1)).toEqual(messages);
    expect(dataOf(events, "warning").map(({ code }) => code)).toEqual(["summarization_failed"]);
    expect(state.size).toBe(0);
  });

  test("is not repeated in every step of the run after a failure", async () => {
    const step: Turn = { call: [{ tool: "nothing" }] };
    const summary: Turn = { fail: { code: "model_rejected" } };
    const { summaries } = await summaryOf(full(), listening({ summary, turns: [step, step, step] }));
    expect(summaries).toHaveLength(1);
  });

  test("is abandoned if it hangs", async () => {
    const listener = listening({ summary: { say: "never", delay_ms: 60_000 } });
    const hooks = [compacting(), made(timeout, { options: { model: 0.02 } })];
    const { outcome, events } = await play({ model: listener.model, hooks, input: { messages: full() } });
    expect(outcome.status).toBe("success");
    expect(dataOf(events, "warning")[0]?.code).toBe("summarization_failed");
  });

  test("ends if the run is cancelled", async () => {
    const cancel = new AbortController();
    const { model } = listening({
      summary: () => {
        setImmediate(() => cancel.abort());
        return { say: "x", delay_ms: 60_000 };
      },
    });
    const { outcome, events } = await play({
      ...{ model, hooks: [compacting()] },
      input: { messages: full(), signal: cancel.signal },
    });
    expect(outcome.status).toBe("cancelled");
    expect(dataOf(events, "warning")).toEqual([]);
  });
});
