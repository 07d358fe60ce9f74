// What the agents of a family have in common: a board of tasks, and what went wrong before.

import { expect, test } from "vitest";
import { textOf } from "../../../../src/agent/core/message.ts";
import { cast, completing, delegating, played, results } from "../../../support/team.ts";

const agents = `
defaults: { model: "scripted:test", hooks: { tasks: true, reflections: true } }
agents:
  lead: { system_prompt: I am lead, subagents: [coder] }
  coder: { system_prompt: I am coder }
`;
const create = (...ids: string[]) => ({
  call: [{ tool: "create_tasks", args: { tasks: ids.map((id) => ({ id, title: id })) } }],
});
const list = { call: [{ tool: "list_tasks" }] };

test("a task on the board is claimed for the child that gets it, and settled with the child's result", async () => {
  const seen: string[] = [];
  const { events } = await played({
    agents,
    script: cast({
      lead: [
        create("parse", "print", "mine"),
        { call: [{ tool: "claim_task", args: { id: "mine" } }] },
        delegating(
          { agent: "coder", task: "Parse", task_id: "parse" },
          { agent: "coder", task: "No", task_id: "none" },
          { agent: "coder", task: "Mine", task_id: "mine" },
        ),
        list,
        { say: "ok" },
      ],
      coder: (request, turn) => {
        if (turn === 0) return list;
        seen.push(textOf(request.messages.at(-1)?.content ?? ""));
        return completing("Parsed.");
      },
    }),
  });
  expect(seen).toEqual([expect.stringContaining("[in_progress] parse: parse (claimed by coder-parse-1)")]);
  const [, , reports, board] = results(events);
  expect(reports).toMatch(/\[coder-task-2\] agent coder: failed\nThere is no task `none`/);
  expect(reports).toMatch(/\[coder-mine-3\] agent coder: failed\nTask `mine` is taken by `lead`/);
  expect(board).toContain("[completed] parse");
  expect(board).toContain("[in_progress] mine: mine (claimed by lead)");
  expect(board).toContain("[pending] print");
});

test("a task whose child cannot start has failed on the board too", async () => {
  const { events } = await played({
    agents,
    config: { limits: { subagents_in_all: 1 } },
    script: cast({
      lead: [
        create("one", "two"),
        delegating(
          { agent: "coder", task: "One", task_id: "one" },
          { agent: "coder", task: "Two", task_id: "two" },
        ),
        list,
        { say: "ok" },
      ],
      coder: [completing("Done.")],
    }),
  });
  expect(
    results(events)
      .at(-1)
      ?.match(/\[\w+\]/g)
      ?.toSorted(),
  ).toEqual(["[completed]", "[failed]"]);
});

test("the next agent with a similar task sees what went wrong", async () => {
  const told: string[] = [];
  const task = { agent: "coder", task: "Translate the German manual" };
  await played({
    agents,
    script: cast({
      lead: [delegating(task), delegating(task), { say: "ok" }],
      coder: (request) => {
        told.push(request.messages.map(({ content }) => textOf(content)).join("\n"));
        return {
          call: [{ tool: "task_complete", args: { status: "failed", summary: "It is in Dutch." } }],
        };
      },
    }),
  });
  expect(told[0]).not.toContain("It is in Dutch.");
  expect(told[1]).toMatch(
    /<prior_reflections>[\s\S]*It is in Dutch\.[\s\S]*<\/prior_reflections>\nTranslate/,
  );
});
