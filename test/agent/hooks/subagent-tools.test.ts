import { expect, test } from "vitest";
import { dataOf } from "../../support/drain.ts";
import { cast, completing, delegating, played, results, TEAM } from "../../support/team.ts";

// The tools of a team beside `delegate`: who there is, a task for one, the report.
const NAMED_BY_ALL = `
defaults: { subagents: [zoe, lead, coder], model: "scripted:test" }
agents:
  lead: { system_prompt: I am lead }
  zoe: { system_prompt: I am zoe }
  coder: { system_prompt: I am coder, description: Writes code }
`;

test("list_agents lists the agents that the agent can delegate to, in order and without itself", async () => {
  const { events } = await played({
    agents: NAMED_BY_ALL,
    script: cast({ lead: [{ call: [{ tool: "list_agents" }] }, { say: "ok" }] }),
  });
  expect(results(events)).toEqual(["- coder: Writes code\n- zoe"]);
});

test("task delegates one task and returns its report as the call's result", async () => {
  const task = { agent: "coder", task: "Fix it", context: "It is broken." };
  const { events } = await played({
    agents: TEAM,
    script: cast({
      lead: [{ call: [{ tool: "task", id: "c1", args: task }] }, { say: "ok" }],
      coder: [completing("Fixed.", { caveats: "Slow now." })],
    }),
  });
  expect(dataOf(events, "on_subagent_start")).toMatchObject([
    { id: "c1", call_id: "c1", name: "coder-fix-1" },
  ]);
  expect(results(events)).toEqual(["[coder-fix-1] agent coder: completed\nFixed.\nCaveats: Slow now."]);
});

test("task_complete ends the work immediately, and the model is not called again", async () => {
  let asked = 0;
  const { events } = await played({
    script: cast({
      lead: [delegating({ agent: "coder", task: "Fix it" }), { say: "ok" }],
      coder: () => completing(`Fixed after ${++asked}.`),
    }),
  });
  expect(asked).toBe(1);
  expect(results(events)).toEqual(["[coder-fix-1] agent coder: completed\nFixed after 1."]);
  expect(dataOf(events, "on_subagent_end")).toMatchObject([{ status: "completed" }]);
});
