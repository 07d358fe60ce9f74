// Tasks that others work on while their agent does something else.

import { describe, expect, test } from "vitest";
import { textOf } from "../../../src/agent/core/message.ts";
import type { Turn } from "../../../src/agent/models/scripted.ts";
import { dataOf } from "../../support/drain.ts";
import { gate } from "../../support/gate.ts";
import { startServer } from "../../support/server.ts";
import { post } from "../../support/sse.ts";
import { cast, completing, json, own, results, wellFormed } from "../../support/team.ts";

const AGENTS = `
defaults: { model: "scripted:test", tools: [gate, ask_user], permissions: { mode: bypass } }
agents:
  lead: { system_prompt: I am lead, subagents: [coder, tester] }
  coder: { system_prompt: I am coder }
  tester: { system_prompt: I am tester }
`;

const start = (agent: string): Turn => ({
  call: [{ tool: "start_task", args: { agent, task: "Build it", context: "" } }],
});
const call = (tool: string, args: Record<string, unknown> = {}): Turn => ({ call: [{ tool, args }] });
const gated = [{ call: [{ tool: "gate" }] }, completing("Through.")];

interface Asked {
  id: string;
  run_id: string;
}

/** Every message to the lead is a run; the script continues from one to the next. */
async function family(lead: readonly Turn[], others: Record<string, readonly Turn[]>, config: object = {}) {
  const { tool, open, entered } = gate();
  const { url } = await startServer({
    agents: AGENTS,
    tools: [tool],
    script: cast({ lead, ...others }),
    config,
  });
  const run = async (input: string) => wellFormed(await post(`${url}/threads/t1/runs`, { input }));
  const idIn = (text = "") => /id (th_\w+)/.exec(text)?.[1] ?? "";
  const statusOf = async (id: string) => (await json(`${url}/threads/${id}`)).status;
  return { url, run, open, entered, idIn, statusOf };
}

describe("a background task", () => {
  test("outlasts the turn that started it, and later turns can check and await it", async () => {
    const { run, open, entered, idIn } = await family(
      [
        start("coder"),
        { say: "Begun." },
        call("check_tasks"),
        { say: "Not yet." },
        call("wait_tasks"),
        { say: "There." },
      ],
      { coder: gated.map((turn) => ({ ...turn, usage: { input_tokens: 1_000_000 } })) },
    );
    const begun = await run("begin");
    expect(dataOf(own(begun), "done")).toMatchObject([{ status: "success" }]);
    await entered;
    const id = idIn(results(begun)[0]);
    expect(results(await run("look"))).toEqual([`[coder-build-1] agent coder: running, id ${id}`]);
    open();
    const events = await run("wait");
    expect(results(events)).toEqual(["[coder-build-1] agent coder: completed\nThrough."]);
    expect(dataOf(events, "on_subagent_start")).toMatchObject([{ thread_id: id }]);
    const [end] = dataOf(events, "on_subagent_end");
    expect(end).toMatchObject({ status: "completed" });
    // What it used counts as its own.
    expect(end).not.toHaveProperty("usage");
    expect(dataOf(own(events), "done")[0]?.usage.input_tokens).toBeLessThan(1_000_000);
    expect(events.some(({ path }) => path)).toBe(true);
  });

  test("can be awaited together with others until any of them ends; the rest continue", async () => {
    const { run, entered, open, statusOf } = await family(
      [
        { call: [...(start("coder").call ?? []), ...(start("tester").call ?? [])] },
        call("wait_tasks", { mode: "any" }),
        { say: "One is enough." },
        call("wait_tasks"),
        { say: "Both." },
      ],
      { coder: gated, tester: [completing("Tested.")] },
    );
    const events = await run("go");
    const [, , waited] = results(events);
    expect(waited).toMatch(/\[coder-build-1\] agent coder: running, id th_/);
    expect(waited).toMatch(/\[tester-build-2\] agent tester: completed\nTested\./);
    await entered;
    const [child] = dataOf(events, "on_subagent_start").filter(({ agent }) => agent === "coder");
    expect(await statusOf(child?.thread_id ?? "")).toBe("busy");
    open();
    expect(results(await run("wait"))).toEqual(["[coder-build-1] agent coder: completed\nThrough."]);
  });

  test("ends with its cancellation, by its id", async () => {
    const lead: Turn[] = [start("coder"), { say: "Begun." }];
    const { run, entered, idIn, url, statusOf } = await family(lead, { coder: gated });
    const id = idIn(results(await run("begin"))[0]);
    await entered;
    lead.push(call("cancel_task", { id: "th_none" }), { say: "Hm." });
    expect(results(await run("cancel"))).toEqual(["There is no task `th_none` in the background."]);
    expect(await statusOf(id)).toBe("busy");
    lead.push(call("cancel_task", { id }), call("check_tasks", { ids: [id] }), { say: "Gone." });
    expect(results(await run("cancel"))).toEqual([
      "[coder-build-1] agent coder: cancelled\nCancelled.",
      expect.stringMatching(/: cancelled/),
    ]);
    await expect
      .poll(async () => (await json(`${url}/threads/${id}/runs`)).items)
      .toMatchObject([{ status: "cancelled" }]);
  });

  test("is refused beyond sixteen at once", async () => {
    const calls = Array.from({ length: 17 }, () => start("coder").call ?? []).flat();
    const { run } = await family([{ call: calls }, { say: "Begun." }], { coder: [completing("Built.")] });
    const told = results(await run("go"));
    expect(told.filter((each) => each.includes(": started, id "))).toHaveLength(16);
    expect(told.filter((each) => each.startsWith("16 tasks are already in the background"))).toHaveLength(1);
  });

  test("waits for a free place unless its parent waits for it", async () => {
    const { run } = await family(
      [start("coder"), call("wait_tasks"), { say: "Done." }],
      { coder: [completing("Built.")] },
      { limits: { runs: 1 } },
    );
    expect(results(await run("go"))[1]).toBe("[coder-build-1] agent coder: completed\nBuilt.");
  });

  describe("that asks", () => {
    const asking = async () => {
      const made = await family([start("coder"), { say: "Begun." }, call("wait_tasks"), { say: "Fine." }], {
        coder: [call("ask_user", { question: "Red or blue?" }), completing("Blue it is.")],
      });
      const id = made.idIn(results(await made.run("begin"))[0]);
      await expect.poll(() => made.statusOf(id)).toBe("interrupted");
      const [waiting] = (await json(`${made.url}/interrupts`)).items as unknown as Asked[];
      expect(waiting).toMatchObject({ thread_id: id, kind: "question" });
      const answer = async (thread: string, asked: Asked | undefined) => {
        const answers = [{ id: asked?.id, decision: "respond", message: "blue" }];
        const resume = `${made.url}/threads/${thread}/runs/${asked?.run_id}/resume`;
        return wellFormed(await post(resume, { answers }));
      };
      return { ...made, id, waiting, answer };
    };
    const report = ["[coder-build-1] agent coder: completed\nBlue it is."];

    test("asks in its own thread unless its parent waits for it, in which case it asks through the parent", async () => {
      const { run, answer, id } = await asking();
      const waiting = await run("wait");
      expect(dataOf(own(waiting), "done")).toMatchObject([{ status: "interrupted" }]);
      const [asked] = dataOf(own(waiting), "on_interrupt");
      expect(asked?.asked_by).toMatchObject({ thread_id: id });
      expect(results(await answer("t1", asked))).toEqual(report);
    });

    test("still reports to its parent if it was answered in its own thread", async () => {
      const { run, answer, id, waiting } = await asking();
      await answer(id, waiting);
      expect(results(await run("wait"))).toEqual(report);
    });
  });
});

test("a run that is only waiting can be cancelled, and its background tasks continue", async () => {
  const { url, entered, open, statusOf } = await family(
    [start("coder"), call("wait_tasks"), { say: "Done." }],
    { coder: gated },
  );
  const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
  await entered;
  const { event } = await viewer.until(({ event }) => event === "on_subagent_start");
  const child = event.event === "on_subagent_start" ? event : undefined;
  await fetch(`${url}/threads/t1/runs/${child?.run_id}/cancel`, { method: "POST" });
  const events = await wellFormed(viewer);
  expect(dataOf(own(events), "done")).toMatchObject([{ status: "cancelled" }]);
  const id = child?.data.thread_id ?? "";
  expect(await statusOf(id)).toBe("busy");
  open();
  await expect.poll(() => statusOf(id)).toBe("idle");
  const messages = (await json(`${url}/threads/${id}/messages`)).items as unknown as { content: string }[];
  expect(messages.map(({ content }) => textOf(content)).join()).toContain("open");
});
