import { expect, test } from "vitest";
import { z } from "zod";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import type { Run } from "../../../src/agent/core/tool.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { play } from "../../support/agent.ts";
import { lineage } from "../hooks/family.ts";

test("a tool receives the owner of its run, which the model does not see", async () => {
  const runs: Run[] = [];
  const requests: ModelRequest[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    execute(_args, _call, run) {
      runs.push(run);
      return "seen";
    },
  });
  await play({
    tools: [look],
    description: "Looks around",
    input: { threadId: "t1", lineage: lineage("coder-1"), threadMetadata: { ticket: 7 } },
    script(request, turn) {
      requests.push(request);
      return turn === 0 ? { call: [{ tool: "look", id: "c1", args: { at: "x" } }] } : { say: "ok" };
    },
  });
  expect(runs).toMatchObject([
    {
      ...{ agent: "test", description: "Looks around", step: 1, threadMetadata: { ticket: 7 } },
      ...{ threadId: "t1", owner: { tenant: "acme", user: "ada" }, lineage: { name: "coder-1" } },
    },
  ]);
  expect(requests[0]?.tools).toMatchObject([{ parameters: { properties: { at: {} }, required: ["at"] } }]);
  expect(JSON.stringify(requests[0]?.tools)).not.toMatch(/acme|ada|t1/);
});
