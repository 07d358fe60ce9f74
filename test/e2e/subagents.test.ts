// Families of agents through approvals, cancellation, budgets and crashes: what holds for one run holds for the tree.

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { Turn } from "../../src/agent/models/scripted.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { dataOf } from "../support/drain.ts";
import { gate } from "../support/gate.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post, view } from "../support/sse.ts";
import {
  cast,
  completing,
  delegating,
  json,
  own,
  played,
  results,
  TEAM,
  wellFormed,
} from "../support/team.ts";

const count = () => {
  let times = 0;
  const tool = defineTool({
    name: "deploy",
    description: "",
    parameters: z.object({}),
    execute: () => `deployed ${++times}`,
  });
  return { tool, times: () => times };
};

const send = (url: string, body: object = {}) =>
  json(url, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });

/** The run of the first thread. */
function runOf(events: readonly StreamEvent[]): string {
  const first = own(events).find(({ event }) => event === "run_start");
  return (first?.event === "run_start" && first.run_id) || "";
}

/** The tasks that were given, at least one. */
function childrenOf(events: readonly StreamEvent[]) {
  const starts = dataOf(events, "on_subagent_start");
  expect(starts).not.toEqual([]);
  return starts;
}

const CHAIN = `
defaults: { model: "scripted:test", tools: [deploy, gate] }
agents:
  lead: { system_prompt: I am lead, subagents: [mid] }
  mid: { system_prompt: I am mid, subagents: [low] }
  low:
    system_prompt: I am low
    permissions: { mode: bypass, rules: [{ ask: deploy, message: "May it?" }] }
`;

const PARENTS: Readonly<Record<string, readonly Turn[]>> = {
  lead: [delegating({ agent: "mid", task: "Organise it" }), { say: "Lead is done." }],
  mid: [delegating({ agent: "low", task: "Deploy it" }), { say: "Mid is done." }],
};
const chain = (low: readonly Turn[]) => cast({ ...PARENTS, low });

describe("a question two levels down", () => {
  const low = [{ call: [{ tool: "deploy" }] }, completing("It is out.")];

  test("suspends all parents, and is answered through the root, after a restart too", async () => {
    const { tool, times } = count();
    const options = {
      ...{ agents: CHAIN, tools: [tool, gate().tool], script: chain(low), dir: await temporaryFolder() },
      config: { store: "sqlite" },
    };
    const { events, app } = await played(options);
    await app.close();
    const { url } = await startServer(options);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "interrupted" }]);
    expect(dataOf(events, "on_subagent_end").map(({ status }) => status)).toEqual([
      "interrupted",
      "interrupted",
    ]);
    const [asked] = dataOf(own(events), "on_interrupt");
    expect(asked).toMatchObject({ kind: "approval", name: "deploy", asked_by: { agent: "low" } });
    const inbox = (await json(`${url}/interrupts`)).items as unknown as object[];
    expect(inbox).toMatchObject([{ id: asked?.id, thread_id: "t1" }]);
    expect(times()).toBe(0);

    const answers = [{ id: asked?.id, decision: "approve" }];
    const viewer = await post(`${url}/threads/t1/runs/${asked?.run_id}/resume`, { answers });
    const after = await wellFormed(viewer);
    expect(times()).toBe(1);
    expect(results(after)).toEqual(["[mid-organise-1] agent mid: completed\nMid is done."]);
    expect(dataOf(after, "on_subagent_end").map(({ summary }) => summary)).toEqual([
      "It is out.",
      "Mid is done.",
    ]);
    expect(dataOf(own(after), "done")).toMatchObject([{ status: "success" }]);
    expect((await json(`${url}/interrupts`)).items).toEqual([]);
    // The trail has the answer once, although each parent passes it on.
    await fetch(`${url}/threads/t1`, { method: "DELETE" });
    const trail = async () =>
      ((await json(`${url}/admin/audit`)).items as unknown as { action: string }[]).map(
        ({ action }) => action,
      );
    await expect.poll(trail).toContain("thread.delete");
    expect((await trail()).filter((action) => action === "interrupt.approve")).toHaveLength(1);
  });

  test("is decided when it expires, and all parents continue", async () => {
    const { tool, times } = count();
    const { url } = await played({
      agents: CHAIN.replace(
        "defaults: {",
        "defaults: { interrupts: { expires_after: 1s, on_expiry: approve },",
      ),
      tools: [tool, gate().tool],
      script: chain(low),
    });
    await expect.poll(async () => (await json(`${url}/threads/t1`)).status).toBe("idle");
    expect(times()).toBe(1);
    const { messages } = await json(`${url}/threads/t1/state`);
    expect(messages).toMatchObject([{}, {}, { role: "tool" }, { content: "Lead is done." }]);
    expect((await json(`${url}/interrupts`)).items).toEqual([]);
  });

  test("waits until its siblings have ended, which are not run again", async () => {
    const { tool, times } = count();
    let spoken = 0;
    const { url, events } = await played({
      tools: [tool],
      agents: TEAM.replace(
        "description: Writes",
        "tools: [deploy], permissions: { mode: bypass, rules: [{ ask: deploy }] }, description: Writes",
      ),
      script: cast({
        lead: [
          delegating({ agent: "coder", task: "Ship" }, { agent: "tester", task: "Test" }),
          { say: "ok" },
        ],
        coder: [{ call: [{ tool: "deploy" }] }, completing("Shipped.")],
        tester: () => {
          spoken++;
          return completing("Tested.");
        },
      }),
    });
    expect(
      dataOf(events, "on_subagent_end")
        .map(({ status }) => status)
        .sort(),
    ).toEqual(["completed", "interrupted"]);
    const [asked] = dataOf(own(events), "on_interrupt");
    const answers = [{ id: asked?.id, decision: "approve" }];
    const viewer = await post(`${url}/threads/t1/runs/${asked?.run_id}/resume`, { answers });
    const after = await wellFormed(viewer);
    expect(results(after)).toEqual([
      "[coder-ship-1] agent coder: completed\nShipped.\n\n[tester-test-2] agent tester: completed\nTested.",
    ]);
    expect([times(), spoken]).toEqual([1, 1]);
  });

  test.each([
    ["a cancellation", (url: string, run: string) => send(`${url}/threads/t1/runs/${run}/cancel`)],
    [
      "a new message",
      (url: string) => post(`${url}/threads/t1/runs`, { input: "Never mind." }).then((v) => v.ended()),
    ],
  ])("is closed with %s of the first", async (_, end) => {
    const { tool } = count();
    const { url, events } = await played({ agents: CHAIN, tools: [tool, gate().tool], script: chain(low) });
    const [asked] = dataOf(own(events), "on_interrupt");
    await end(url, asked?.run_id ?? "");
    for (const { thread_id } of childrenOf(events))
      await expect.poll(async () => (await json(`${url}/threads/${thread_id}`)).status).toBe("idle");
    expect((await json(`${url}/interrupts`)).items).toEqual([]);
  });
});

describe("an active tree of agents", () => {
  const low = [{ call: [{ tool: "gate" }] }, { say: "Through." }];

  test("is cancelled from its root even if a tool below does not stop", async () => {
    const entered = Promise.withResolvers<void>();
    const stubborn = defineTool({
      name: "gate",
      description: "Never ends.",
      parameters: z.object({}),
      execute: () => new Promise<string>(() => entered.resolve()),
    });
    const { url } = await startServer({ agents: CHAIN, tools: [stubborn, count().tool], script: chain(low) });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await entered.promise;
    await send(`${url}/threads/t1/runs/${runOf(viewer.seen.map(({ event }) => event))}/cancel`);
    const events = await wellFormed(viewer);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "cancelled" }]);
    expect(dataOf(own(events), "on_subagent_end")).toMatchObject([{ status: "cancelled" }]);
    const state = await json(`${url}/threads/t1/state`);
    expect(Object.values(state.subagents ?? {})).toMatchObject([{ status: "cancelled" }]);
  });

  test("is stopped after its step from its root", async () => {
    const todos = { tool: "write_todos", args: { todos: [] } };
    const { url } = await startServer({
      agents: CHAIN.replace("I am low", "I am low\n    max_iterations: 0"),
      tools: [gate().tool, count().tool],
      script: cast({
        lead: [delegating({ agent: "mid", task: "Organise it" })],
        mid: [delegating({ agent: "low", task: "Deploy it" })],
        low: () => ({ say: "One more step.", call: [todos], delay_ms: 5 }),
      }),
    });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await viewer.until(({ event, path }) => event === "on_tool_end" && path?.length === 2);
    const run = runOf(viewer.seen.map(({ event }) => event));
    await send(`${url}/threads/t1/runs/${run}/cancel`, { mode: "interrupt" });
    const events = await wellFormed(viewer);
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "interrupted", stop_reason: "interrupt" }]);
    expect(results(events)[0]).toMatch(/Stopped before it had finished/);
    for (const { thread_id } of childrenOf(events))
      await expect
        .poll(async () => (await json(`${url}/threads/${thread_id}/runs`)).items)
        .toMatchObject([{ status: "interrupted" }]);
  });

  const within = (tokens: number) =>
    TEAM.replace("subagents:", `hooks: { budgets: { tokens: ${tokens} } }, subagents:`);

  test("ends when it has used its root's tokens", async () => {
    const endless = () => ({
      say: "Once more.",
      call: [{ tool: "write_todos", args: { todos: [] } }],
      usage: { input_tokens: 100 },
      delay_ms: 5,
    });
    const { events, url } = await played({
      agents: within(1000),
      script: cast({ lead: [delegating({ agent: "coder", task: "Spend" }), { say: "ok" }], coder: endless }),
    });
    const [end] = dataOf(own(events), "done");
    expect(end).toMatchObject({ status: "error", stop_reason: "token_budget" });
    const used = (end?.usage.input_tokens ?? 0) + (end?.usage.output_tokens ?? 0);
    expect(used).toBeGreaterThanOrEqual(1000);
    expect(used).toBeLessThan(2000);
    const [child] = dataOf(events, "on_subagent_start");
    await expect
      .poll(async () => (await json(`${url}/threads/${child?.thread_id}/runs`)).items)
      .toMatchObject([{ status: "cancelled" }]);
  });

  test("has no limit of tokens if its root has none", async () => {
    const lead = [delegating({ agent: "coder", task: "Build" }), { say: "ok" }];
    const { events } = await played({
      agents: within(0),
      script: cast({ lead, coder: [completing("Built.")] }),
    });
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
  });

  test("counts its children's usage once, as its root's", async () => {
    const usage = { input_tokens: 10, output_tokens: 1 };
    const { events, url } = await played({
      agents: CHAIN,
      tools: [count().tool, gate().tool],
      script: cast({
        lead: [
          { ...delegating({ agent: "mid", task: "x" }), usage },
          { say: "ok", usage },
        ],
        mid: [
          { ...delegating({ agent: "low", task: "y" }), usage },
          { say: "ok", usage },
        ],
        low: [{ say: "ok", usage }],
      }),
    });
    expect(dataOf(own(events), "done")).toMatchObject([{ usage: { input_tokens: 50, output_tokens: 5 } }]);
    expect(dataOf(own(events), "on_subagent_end")).toMatchObject([{ usage: { input_tokens: 30 } }]);
    // What the user pays for is counted where it was used.
    const usages = (await json(`${url}/usage`)).items as unknown as { agent: string; input_tokens: number }[];
    const paid = Object.fromEntries(usages.map(({ agent, input_tokens }) => [agent, input_tokens]));
    expect(paid).toEqual({ lead: 20, mid: 20, low: 10 });
  });

  test("continues at the same place after its process died", async () => {
    const { tool, entered } = gate();
    const options = {
      ...{ agents: CHAIN, dir: await temporaryFolder() },
      config: { store: "sqlite", shutdown: { grace: "0s" } },
      script: cast(
        Object.fromEntries(
          Object.entries({ ...PARENTS, low }).map(([agent, turns]) => [
            agent,
            turns.map((turn) => ({ ...turn, usage: { input_tokens: 10 } })),
          ]),
        ),
      ),
    };
    const first = await startServer({ ...options, tools: [tool, count().tool] });
    const viewer = await post(`${first.url}/threads/t1/runs`, { input: "go" });
    await entered;
    const { event } = await viewer.until(({ event }) => event === "run_start");
    await first.app.close();

    const again = gate();
    again.open();
    const second = await startServer({ ...options, tools: [again.tool, count().tool] });
    const events = await wellFormed(await view(`${second.url}/threads/t1/runs/${runOf([event])}/events`));
    expect(dataOf(own(events), "run_resumed")).toHaveLength(1);
    // Two calls of each agent.
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success", usage: { input_tokens: 60 } }]);
    expect(results(events)).toEqual(["[mid-organise-1] agent mid: completed\nMid is done."]);
    const children = await json(`${second.url}/threads?parent=t1`);
    expect(children.items).toHaveLength(1);
  });
});

describe("a thread with children", () => {
  test("is deleted with them unless one is active", async () => {
    const { tool, entered, open } = gate();
    const { url } = await startServer({
      agents: TEAM.replace(
        "description: Writes",
        "tools: [gate], permissions: { mode: bypass }, description: Writes",
      ),
      tools: [tool],
      script: cast({
        lead: [
          { call: [{ tool: "start_task", args: { agent: "coder", task: "Wait", context: "" } }] },
          { say: "ok" },
        ],
        coder: [{ call: [{ tool: "gate" }] }, { say: "Through." }],
      }),
    });
    const events = await wellFormed(await post(`${url}/threads/t1/runs`, { input: "go" }));
    await entered;
    const id = /id (th_\w+)/.exec(results(events)[0] ?? "")?.[1];
    const refused = await fetch(`${url}/threads/t1`, { method: "DELETE" });
    expect(refused.status).toBe(409);
    expect((await fetch(`${url}/threads/${id}`)).status).toBe(200);
    open();
    await expect.poll(async () => (await json(`${url}/threads/${id}`)).status).toBe("idle");
    expect((await fetch(`${url}/threads/t1`, { method: "DELETE" })).status).toBe(204);
    expect((await fetch(`${url}/threads/${id}`)).status).toBe(404);
  });
});
