import { expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import type { Run } from "../../../src/agent/core/tool.ts";
import { plainTool, play } from "../../support/agent.ts";
import { lineage } from "../hooks/family.ts";

test("a tool receives the owner of its run, which the model does not see", async () => {
  const runs: Run[] = [];
  const requests: ModelRequest[] = [];
  const look = plainTool("look", (_args, _call, run) => {
    runs.push(run);
    return "seen";
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
  const shown = requests.map(({ system, messages, tools }) => ({ system, messages, tools }));
  expect(JSON.stringify(shown)).not.toMatch(/"acme|"ada"|"t1"/);
});
