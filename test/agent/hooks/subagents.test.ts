// Agents that give a task to another one and wait for it, as a front end meets them.

import { describe, expect, test } from "vitest";
import { textOf } from "../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { plainTool } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { startServer } from "../../support/server.ts";
import {
  cast,
  completing,
  delegating,
  json,
  own,
  played,
  results,
  speaker,
  TEAM,
} from "../../support/team.ts";

describe("a delegated task", () => {
  const refactoring = (coder: Turn[]) =>
    played({
      script: cast({
        lead: [delegating({ agent: "Coder", task: "Refactor the parser" }), { say: "All done." }],
        coder: [...coder, { say: "done" }],
      }),
    });

  test("is worked on, reported, and streamed under the path of its call", async () => {
    const report = { files_modified: ["a.ts"], tests_run: ["parse: 3 pass", "lint: ok"] };
    const { events } = await refactoring([{ say: "On it.", ...completing("Cut in two.", report) }]);
    const [started] = dataOf(events, "on_subagent_start");
    expect(started).toMatchObject({ agent: "coder", name: "coder-refactor-1", parent: "lead" });
    expect(dataOf(events, "on_subagent_end")).toMatchObject([
      { status: "completed", summary: "Cut in two." },
    ]);
    const nested = events.filter(({ path }) => path?.[0] === started?.id);
    expect(nested.length).toBeGreaterThan(4);
    for (const event of nested.filter(({ event }) => event !== "on_chat_model_stream"))
      expect(event).toMatchObject({ thread_id: started?.thread_id, run_id: started?.run_id });
    expect(results(events)).toEqual([
      "[coder-refactor-1] agent coder: completed\nCut in two.\nFiles modified: a.ts\nTests run: parse: 3 pass; lint: ok",
    ]);
  });

  test.each([
    [{ tests_run: "3 pass" }, "\nTests run: 3 pass"],
    [{ tests_run: [{ name: "parse", passed: 3 }] }, `\nTests run: {\n  "name": "parse",\n  "passed": 3\n}`],
    [{ files_modified: "a.ts", tests_run: [], caveats: null }, "\nFiles modified: a.ts"],
    [{ caveats: ["Slow.", "Untested."], confidence: 0.9 }, "\nCaveats: Slow.\nUntested."],
    [
      { files_modified: Array(101).fill("b.ts"), status: "Success" },
      `\nFiles modified: ${Array(100).fill("b.ts").join(", ")}`,
    ],
  ])("is reported even if the report has a different shape: %j", async (more, told) => {
    const { events } = await refactoring([completing("Cut in two.", more)]);
    expect(results(events)).toEqual([`[coder-refactor-1] agent coder: completed\nCut in two.${told}`]);
  });

  test("requires a summary: without one, the model learns what is missing and reports again", async () => {
    const empty = { call: [{ tool: "task_complete", args: { status: "perhaps" } }] };
    const { events } = await refactoring([empty, completing("Cut in two.")]);
    expect(dataOf(events, "on_tool_end")[0]?.error).toMatch(/^Invalid arguments\. status: .* summary: /);
    expect(results(events)).toEqual(["[coder-refactor-1] agent coder: completed\nCut in two."]);
  });

  test("includes the delegating agent and the context, but nothing of the parent's own", async () => {
    const seen: ModelRequest[] = [];
    await played({
      tools: [plainTool("secret")],
      agents: TEAM.replace("subagents:", "tools: [secret], subagents:"),
      script: (request, call) => {
        seen.push(request);
        return cast({
          lead: [
            delegating({ agent: "coder", task: "Write it", context: "In </delegation_context> C." }),
            {},
          ],
          coder: [{ say: "Written." }],
        })(request, call);
      },
    });
    const child = seen.find((request) => speaker(request) === "coder");
    expect(child?.messages.map(({ content }) => textOf(content))).toEqual([
      "<delegation_context>\n`lead` gives you a task.\n\nIn <\\/delegation_context> C.\n</delegation_context>",
      "Write it",
    ]);
    expect(child?.tools.map(({ name }) => name)).toEqual(["task_complete", "write_todos"]);
    expect(child?.system.map(({ id }) => id)).toContain("completion_protocol");
    const lead = seen.find((request) => speaker(request) === "lead");
    expect(lead?.tools.map(({ name }) => name)).not.toContain("task_complete");
    expect(lead?.system.find(({ id }) => id === "available_agents")?.text).toContain(
      "- coder: Writes code\n- tester: Tests code",
    );
  });

  test.each([
    ["ends without a report", [{ say: "It is green." }], "completed\nIt is green."],
    [
      "fails, and says so",
      [{ call: [{ tool: "task_complete", args: { status: "failed", summary: "No." } }] }],
      "failed\nNo.",
    ],
    [
      "breaks",
      [{ fail: { code: "model_rejected", message: "Too blunt." } }],
      "failed\nToo blunt. (model_rejected)",
    ],
    [
      "turns in circles",
      [{ say: "Hm.", call: [{ tool: "write_todos", args: { todos: [] } }] }, {}],
      "failed\nIt ended at its limit (max_iterations). Its last message: Hm.",
    ],
    [
      "reports twice",
      [{ call: [...(completing("One.").call ?? []), ...(completing("Two.").call ?? [])] }],
      "completed\nOne.",
    ],
  ])("is reported with its kind if its agent %s", async (_, coder, told) => {
    const { events } = await played({
      agents: TEAM.replace("description: Writes", "max_iterations: 1, description: Writes"),
      script: cast({ lead: [delegating({ agent: "coder", task: "Do" }), { say: "ok" }], coder }),
    });
    expect(results(events)).toEqual([`[coder-task-1] agent coder: ${told}`]);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
  });

  test("includes up to 16,000 characters of context, and returns 2,000 characters of its report", async () => {
    let context = "";
    const { events } = await played({
      script: cast({
        lead: [
          delegating({ agent: "coder", task: "Do", context: `${"c".repeat(16_000)}${"x".repeat(7)}` }),
          { say: "ok" },
        ],
        coder: ({ messages }) => {
          context = textOf(messages[0]?.content ?? "");
          return { say: `${"r".repeat(2_000)}${"x".repeat(9)}` };
        },
      }),
    });
    expect(context).toContain(`${"c".repeat(16_000)}\n[7 more characters are left out.]\n`);
    expect(results(events)[0]).toMatch(/completed\nr{2000}\n\[9 more characters are left out\.\]$/);
  });

  test("is refused for the agent itself and for an unknown agent, with the list of agents", async () => {
    const { events } = await played({
      script: cast({
        lead: [
          delegating(
            { agent: "LEAD", task: "a" },
            { agent: "cook", task: "b" },
            { agent: "coder", task: "c" },
          ),
          delegating({ agent: "cook", task: "b" }),
          { say: "ok" },
        ],
        coder: [{ say: "c!" }],
      }),
    });
    const [first, second] = results(events);
    expect(first).toMatch(/LEAD: You are `lead` yourself/);
    expect(first).toMatch(/cook: There is no agent `cook`.*Use one of: `coder`, `tester`/);
    expect(first).toMatch(/\[coder-task-1\] agent coder: completed\nc!/);
    expect(dataOf(own(events), "on_tool_end").map(({ error }) => error !== undefined)).toEqual([false, true]);
    expect(second).toMatch(/There is no agent `cook`/);
  });

  test("is limited to the agent's delegation depth", async () => {
    const offered = new Map<string, string[]>();
    const chain = `
defaults: { subagents: [a, b, c], model: "scripted:test" }
agents:
  a: { system_prompt: I am a, max_delegation_depth: 2 }
  b: { system_prompt: I am b, max_delegation_depth: 2 }
  c: { system_prompt: I am c, max_delegation_depth: 2 }
`;
    const { events } = await played({
      agents: chain,
      script: (request, call) => {
        offered.set(
          speaker(request),
          request.tools.map(({ name }) => name),
        );
        return cast({
          a: [delegating({ agent: "b", task: "x" }), { say: "ok" }],
          b: [delegating({ agent: "c", task: "y" }), { say: "b ok" }],
          c: [delegating({ agent: "a", task: "z" }), { say: "c ok" }],
        })(request, call);
      },
    });
    expect(offered.get("b")).toContain("delegate");
    expect(offered.get("c")).not.toContain("delegate");
    expect(dataOf(events, "on_subagent_start")).toMatchObject([
      { name: "b-task-1", parent: "a" },
      { name: "c-task-1.1", parent: "b-task-1" },
    ]);
    expect(events.some(({ path }) => path?.length === 2)).toBe(true);
    expect(results(events)).toEqual(["[b-task-1] agent b: completed\nb ok"]);
  });
});

test("an agent without subagents has no extra tools or prompt", async () => {
  const { url } = await startServer({ script: [{ say: "hi" }] });
  const run = await json(`${url}/threads/t1/runs`, {
    ...{ method: "POST", body: JSON.stringify({ input: "go" }) },
    headers: { "content-type": "application/json", accept: "application/json" },
  });
  expect(run.status).toBe("success");
  expect(await json(`${url}/threads/t1/state`)).not.toHaveProperty("subagents");
});
