// Hooks that keep a run within bounds, as YAML sets them.

import { expect, test } from "vitest";
import { z } from "zod";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { plainTool } from "../../support/agent.ts";
import { dataOf, textSeen } from "../../support/drain.ts";
import { startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";

const read = plainTool("read", () => "word ".repeat(200));
const reading: Turn = { call: [{ tool: "read", args: {} }], usage: { input_tokens: 500 } };

test("guardrails and limits can be set in YAML, and its runs report them", async () => {
  const { url } = await startServer({
    script: () => reading,
    tools: [read],
    agents: `
agents:
  assistant:
    model: scripted:test
    tools: [read]
    hooks:
      guardrails: { message: Not here., input: { topics: [bomb] } }
      budgets: { tokens: 1200 }
`,
  });
  const lastRun = async () => {
    const response = await fetch(`${url}/threads/t1/runs`);
    return z.object({ items: z.array(z.unknown()) }).parse(await response.json()).items[0];
  };
  const refused = await (await post(`${url}/threads/t1/runs`, { input: "A bomb!" })).ended();
  expect(textSeen(refused)).toBe("Not here.");
  expect(dataOf(refused, "done")).toMatchObject([{ status: "success", stop_reason: "refusal" }]);
  expect(await lastRun()).toMatchObject({ status: "success", stop_reason: "refusal" });

  const limited = await (await post(`${url}/threads/t1/runs`, { input: "Read." })).ended();
  expect(dataOf(limited, "done")).toMatchObject([{ status: "error", stop_reason: "token_budget" }]);
  expect(await lastRun()).toMatchObject({ status: "error", stop_reason: "token_budget" });
});
