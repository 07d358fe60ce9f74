import { describe, expect, test } from "vitest";
import { z } from "zod";
import { estimateTokens } from "../../../src/core/message.ts";
import { defineTool } from "../../../src/core/tool.ts";
import type { Turn } from "../../../src/models/scripted.ts";
import { play } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { compacting, listening, talk } from "./compacting.ts";

describe("a request that the model finds too long", () => {
  const overflow: Turn = { fail: { code: "context_overflow" } };

  test("is tried once more with a summary, though it seemed to fit", async () => {
    const listener = listening({ turns: [overflow, { say: "ok" }] });
    const { outcome, events } = await play({
      ...{ model: listener.model, hooks: [compacting()] },
      input: { messages: talk(8, 450) },
    });
    expect(outcome.status).toBe("success");
    expect(listener.summaries).toHaveLength(1);
    expect(dataOf(events, "warning").map(({ code }) => code)).toEqual(["context_compacted"]);
    const [first, second] = listener.asked.map(({ messages }) => estimateTokens(messages));
    expect(second).toBeLessThan((first ?? 0) / 2);
  });

  test("teaches the run how much fits", async () => {
    const step: Turn = { call: [{ tool: "execute" }] };
    const listener = listening({ turns: [overflow, step, step, step, step] });
    const execute = defineTool({
      ...{ name: "execute", description: "", parameters: z.object({}) },
      execute: () => "x".repeat(4500),
    });
    const { outcome } = await play({
      ...{ model: listener.model, tools: [execute], hooks: [compacting()] },
      input: { messages: talk(8, 450) },
    });
    expect(outcome.status).toBe("success");
    expect(listener.summaries.length).toBeGreaterThan(1);
    expect(listener.asked.length).toBeGreaterThan(1);
    for (const { messages } of listener.asked.slice(1)) expect(estimateTokens(messages)).toBeLessThan(3700);
  });

  test("fails when it is too long even so", async () => {
    const listener = listening({ turns: [overflow, overflow] });
    const { outcome } = await play({
      ...{ model: listener.model, hooks: [compacting()] },
      input: { messages: talk(8, 450) },
    });
    expect(outcome).toMatchObject({ status: "error", error: { code: "context_overflow" } });
    expect(listener.asked).toHaveLength(2);
  });

  test("is not sent again when there is nothing to leave out", async () => {
    const listener = listening({ turns: [overflow] });
    const { outcome } = await play({ model: listener.model, hooks: [compacting()] });
    expect(outcome).toMatchObject({ status: "error", error: { code: "context_overflow" } });
    expect(listener.asked).toHaveLength(1);
    expect(listener.summaries).toEqual([]);
  });
});
