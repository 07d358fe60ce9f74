// Several agents at work for one: how many at once, where they work, what they have in common.

import { describe, expect, test } from "vitest";
import { storedReadings } from "../../../src/agent/core/flow.ts";
import { textOf } from "../../../src/agent/core/message.ts";
import { OPEN_ENDED } from "../../../src/agent/core/open-interrupts.ts";
import { unrecordedRun } from "../../../src/agent/core/run.ts";
import { type Child, childrenOf, saveChildren } from "../../../src/agent/hooks/subagents/child.ts";
import { plainTool } from "../../support/agent.ts";
import { dataOf } from "../../support/drain.ts";
import { cast, delegating, json, own, played, results, TEAM } from "../../support/team.ts";
import { ADA, ROOT } from "./family.ts";

/** A tool that waits until `count` calls are in it; reports how many ran at once. */
function meeting(count: number) {
  const met = Promise.withResolvers<void>();
  let inside = 0;
  let most = 0;
  const tool = plainTool("meet", async () => {
    most = Math.max(most, ++inside);
    if (inside >= count) met.resolve();
    await met.promise;
    inside--;
    return "met";
  });
  return { tool, most: () => most };
}

describe("several tasks in one call", () => {
  const tasks = (count: number) =>
    Array.from({ length: count }, (_, n) => ({ agent: n % 2 ? "tester" : "coder", task: `Build part ${n}` }));
  const meets = [{ call: [{ tool: "meet" }] }, { say: "met" }];
  const agents = TEAM.replaceAll(
    "description:",
    "hooks: { permissions: { mode: bypass } }, tools: [meet], description:",
  );

  test("run in parallel, each in an instance with its own name", async () => {
    const { tool } = meeting(4);
    const { events } = await played({
      ...{ tools: [tool], agents },
      script: cast({ lead: [delegating(...tasks(4)), { say: "ok" }], coder: meets, tester: meets }),
    });
    const started = dataOf(events, "on_subagent_start");
    expect(started.map(({ name }) => name).toSorted()).toEqual([
      "coder-build-1",
      "coder-build-3",
      "tester-build-2",
      "tester-build-4",
    ]);
    expect(new Set(started.map(({ id }) => id)).size).toBe(4);
    expect(results(events)[0]?.match(/: completed\nmet/g)).toHaveLength(4);
  });

  test("are limited to the configured number at once", async () => {
    const { tool, most } = meeting(2);
    const { events } = await played({
      tools: [tool],
      agents: agents.replace("subagents:", "hooks: { subagents: { concurrency: 2 } }, subagents:"),
      script: cast({ lead: [delegating(...tasks(6)), { say: "ok" }], coder: meets, tester: meets }),
    });
    expect(most()).toBe(2);
    expect(results(events)[0]?.match(/: completed/g)).toHaveLength(6);
  });

  test("need no places of their own if one run has all of them", async () => {
    const { events } = await played({
      config: { limits: { runs: 1 } },
      script: cast({
        lead: [delegating(...tasks(3)), { say: "ok" }],
        coder: [{ say: "one" }],
        tester: [{ say: "two" }],
      }),
    });
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
  });
});

test("a child has its own thread, and parent and child refer to each other", async () => {
  const { url, events } = await played({
    script: cast({
      lead: [delegating({ agent: "coder", task: "Fix" }), { say: "ok" }],
      coder: [{ say: "done" }],
    }),
  });
  const [started] = dataOf(events, "on_subagent_start");
  const run = own(events).find(({ event }) => event === "run_start");
  const parent = {
    ...{ thread_id: "t1", call_id: started?.call_id, background: false },
    run_id: run?.event === "run_start" ? run.run_id : "",
  };
  expect(await json(`${url}/threads/${started?.thread_id}`)).toMatchObject({
    title: "coder-fix-1",
    agent: "coder",
    parent,
  });
  expect(await json(`${url}/threads?parent=t1`)).toMatchObject({ items: [{ id: started?.thread_id }] });
  expect((await json(`${url}/threads`)).items).toMatchObject([{ id: "t1" }]);
  const state = await json(`${url}/threads/t1/state`);
  expect(state.subagents?.[started?.thread_id ?? ""]).toMatchObject({
    name: "coder-fix-1",
    status: "completed",
  });
});

describe("a child's backend", () => {
  const agents = (backend: string) => `
defaults: { model: "scripted:test", hooks: { permissions: { mode: bypass } } }
agents:
  lead: { system_prompt: I am lead, backend: { type: local }, subagents: [{ agent: coder, backend: ${backend} }] }
  coder: { system_prompt: I am coder, backend: { type: local } }
`;
  const script = cast({
    lead: [
      { call: [{ tool: "write_file", args: { path: "note.txt", content: "from lead" } }] },
      delegating({ agent: "coder", task: "Read" }),
      { say: "ok" },
    ],
    coder: (request, turn) =>
      turn === 0
        ? { call: [{ tool: "read_file", args: { path: "note.txt" } }] }
        : { say: textOf(request.messages.at(-1)?.content ?? "") || "nothing there" },
  });

  test("is its parent's", async () => {
    const { events } = await played({ agents: agents("shared"), script });
    expect(results(events).at(-1)).toContain("from lead");
  });

  test("is its own if configured", async () => {
    const { events } = await played({ agents: agents("own"), script });
    expect(results(events).at(-1)).toContain("nothing there");
  });
});

test("of more than 200 children the oldest that have ended are forgotten, but not what they have read", async () => {
  const place = { owner: ADA, threadId: ROOT, signal: AbortSignal.timeout(60_000) };
  const run = unrecordedRun(place, { name: "lead", interrupts: OPEN_ENDED });
  const call = { message_id: "m", call_id: "c", index: 0, agent: "coder", name: "coder", task: "Build" };
  const child = (number: number): Child => {
    const status = number === 1 ? "running" : "completed";
    const read = number === 3 ? [{ tool: "fetch" }] : [];
    return { ...call, thread_id: `th_${number}`, number, background: true, status, read };
  };
  const numbers = Array.from({ length: 200 }, (_, n) => n + 1);
  for await (const _ of saveChildren(run, numbers.map(child)));
  expect(childrenOf(run)).toHaveLength(200);
  for await (const _ of saveChildren(run, [child(201), child(202)]));
  expect(childrenOf(run).map(({ number }) => number)).toEqual([1, ...numbers.slice(3), 201, 202]);
  expect(storedReadings(run.state)).toEqual([{ tool: "fetch", through: "coder" }]);
});
