// How many subagents work at a time, counted at the model, which sees each of them.

import { describe, expect, test } from "vitest";
import type { Model } from "../../src/agent/core/model.ts";
import { type Script, scriptedModel } from "../../src/agent/models/scripted.ts";
import { dataOf } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { cast, completing, own, played, results, speaker } from "../support/team.ts";

const TREE = `
defaults: { model: "scripted:test" }
agents:
  lead: { system_prompt: I am lead, subagents: [mid] }
  mid: { system_prompt: I am mid, subagents: [low] }
  low: { system_prompt: I am low, subagents: [leaf] }
  leaf: { system_prompt: I am leaf }
`;

/** One message with `calls` calls of `tasks` tasks each. */
const giving = (agent: string, { calls, tasks }: { calls: number; tasks: number }) => ({
  call: Array.from({ length: calls }, () => ({
    tool: "delegate",
    args: { tasks: Array.from({ length: tasks }, () => ({ agent, task: "Do it", context: "none" })) },
  })),
});

/** Counts the subagents that ask the model at once. Each answer takes so many ticks of the event loop. */
function counting(script: Script, turns = 20) {
  const model = scriptedModel(script);
  const counts = { now: 0, most: 0, all: 0 };
  const counted: Model = {
    ...model,
    async *stream(request) {
      if (speaker(request) === "lead") return yield* model.stream(request);
      counts.all++;
      counts.most = Math.max(counts.most, ++counts.now);
      try {
        for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
        return yield* model.stream(request);
      } finally {
        counts.now--;
      }
    },
  };
  return { model: counted, counts };
}

const done = completing("Done.");

describe("a run's subagents", () => {
  test("are limited in number at once, across calls and levels", async () => {
    const { model, counts } = counting(
      cast({
        lead: [giving("mid", { calls: 3, tasks: 4 }), { say: "Lead is done." }],
        mid: [giving("low", { calls: 2, tasks: 2 }), done],
        low: [done],
      }),
    );
    const { events } = await played({ agents: TREE, model, config: { limits: { subagents_per_run: 3 } } });
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
    expect(dataOf(events, "on_subagent_end").filter(({ status }) => status === "completed")).toHaveLength(60);
    expect(counts.most).toBe(3);
  });

  test("are limited at once by the server's limit, across runs", async () => {
    const { model, counts } = counting(
      cast({ lead: [giving("mid", { calls: 1, tasks: 5 }), { say: "Lead is done." }], mid: [done] }),
    );
    const { url } = await startServer({ agents: TREE, model, config: { limits: { subagents: 3 } } });
    const ended = ["one", "two"].map(async (thread) =>
      (await post(`${url}/threads/${thread}/runs`, { input: "go" })).ended(),
    );
    for (const events of await Promise.all(ended))
      expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
    expect(counts).toMatchObject({ most: 3, all: 10 });
  });

  test("never block each other: with one place and three levels, all of them end", async () => {
    const { model, counts } = counting(
      cast({
        lead: [giving("mid", { calls: 2, tasks: 2 }), { say: "Lead is done." }],
        mid: [giving("low", { calls: 2, tasks: 2 }), done],
        low: [giving("leaf", { calls: 1, tasks: 2 }), done],
        leaf: [done],
      }),
      2,
    );
    const limits = { runs: 1, subagents: 1, subagents_per_run: 1 };
    const { events } = await played({ agents: TREE, model, config: { limits } });
    expect(dataOf(own(events), "done")).toMatchObject([{ status: "success" }]);
    expect(dataOf(events, "on_subagent_end").filter(({ status }) => status === "completed")).toHaveLength(52);
    expect(counts.most).toBe(1);
  });

  test("are refused above the total with an error for the model, and the next run starts at zero", async () => {
    const lead = cast({
      lead: (request) => {
        const last = request.messages.at(-1);
        return last?.role === "user" ? giving("mid", { calls: 2, tasks: 3 }) : { say: "Lead is done." };
      },
      mid: [done],
    });
    const { events, url } = await played({
      agents: TREE,
      script: lead,
      config: { limits: { subagents_in_all: 4 } },
    });
    expect(dataOf(events, "on_subagent_start")).toHaveLength(4);
    expect(
      results(events)
        .join("\n")
        .match(/failed\n.*limits\.subagents_in_all/g),
    ).toHaveLength(2);
    const again = await (await post(`${url}/threads/t1/runs`, { input: "once more" })).ended();
    expect(dataOf(again, "on_subagent_start")).toHaveLength(4);
  });

  test("end with their run if it is cancelled while some wait for a place", async () => {
    const script = cast({
      lead: [giving("mid", { calls: 1, tasks: 8 }), { say: "Lead is done." }],
      mid: [{ say: "a b", delay_ms: 600_000 }],
    });
    const { url } = await startServer({ agents: TREE, script, config: { limits: { subagents_per_run: 2 } } });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await viewer.until(({ event, path }) => event === "on_chat_model_start" && path !== undefined);
    const run = viewer.headers.get("location")?.replace(/\/events$/, "");
    expect((await fetch(`${url}${run}/cancel`, { method: "POST" })).status).toBe(200);
    expect(dataOf(own(await viewer.ended()), "done")).toMatchObject([{ status: "cancelled" }]);
    const busy = async () => (await fetch(`${url}/threads?status=busy`)).json();
    await expect.poll(busy).toMatchObject({ items: [] });
  });
});
