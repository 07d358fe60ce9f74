import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { dataOf, textSeen } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { postJson, runsOf, saidIn, statusesOf } from "../support/native.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { numbers, post, view } from "../support/sse.ts";

/** A server whose run on the thread `t1` is held by its tool. */
async function held(config: object = {}, more: readonly object[] = []) {
  const { tool, open, entered } = gate();
  const script = [...gated, ...more] as typeof gated;
  const { url, app } = await startServer({ script, tools: [tool], agents: WITH_GATE, config });
  const runs = `${url}/threads/t1/runs`;
  const viewer = await post(runs, { input: "go" });
  await entered;
  return { url, app, runs, viewer, open };
}

describe("POST /threads/:id/runs", () => {
  test("creates the thread, streams the run, and adds the messages to the thread", async () => {
    const { url } = await startServer({ script: [{ say: "Hello, I am here." }] });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "Hi" });
    expect(viewer.headers.get("content-type")).toBe("text/event-stream");
    expect(viewer.headers.get("x-accel-buffering")).toBe("no");
    const events = await viewer.ended();
    expect(textSeen(events)).toBe("Hello, I am here.");
    const run_id = viewer.headers.get("location")?.split("/").at(-2);
    for (const event of events.filter(({ event }) => event !== "on_chat_model_stream"))
      expect(event).toMatchObject({ thread_id: "t1", run_id });
    expect(numbers(viewer.seen)[0]).toBe(1);
    expect(await saidIn(url, "t1")).toEqual(["Hi", "Hello, I am here."]);
  });

  test("waits for the end and returns the run with its messages if JSON is requested", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }] });
    const start = (input: string) =>
      postJson(`${url}/threads/t1/runs`, { input }, { accept: "application/json" });
    await start("first");
    const response = await start("second");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({
      ...{ status: "success", stop_reason: "end_turn", thread_id: "t1" },
      messages: [{ content: "second" }, { content: "two" }],
    });
  });

  test("outlives its connection, and a returning viewer sees every event exactly once", async () => {
    const { url, viewer: first, open } = await held();
    const { id } = await first.until((event) => event.event === "on_tool_start");
    const events = url + first.headers.get("location");
    first.leave();
    open();
    const second = await view(events, { headers: { "last-event-id": id } });
    await second.ended();
    const before = first.seen.slice(0, first.seen.findIndex((seen) => seen.id === id) + 1);
    const whole = await (await view(events)).ended();
    expect([...before, ...second.seen].map(({ event }) => event)).toEqual(whole);
  });

  test("rejoins the run of the same idempotency key instead of starting another, even with another valid body", async () => {
    const { url } = await startServer({ script: [{ say: "only once" }] });
    const key = { "idempotency-key": "k1" };
    const first = await (await post(`${url}/threads/t1/runs`, { input: "go" }, key)).ended();
    const second = await (await post(`${url}/threads/t1/runs`, { input: "come" }, key)).ended();
    expect(second).toEqual(first);
    expect((await post(`${url}/threads/t1/runs`, { input: 7 }, key)).status).toBe(400);
    expect(await runsOf(url, "t1")).toHaveLength(1);
  });

  test("that is repeated with Last-Event-ID continues the run, and a run that was read to its end has no more", async () => {
    const { url } = await startServer({ script: [{ say: "a b c d" }] });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    await first.ended();
    const from = (at: number) => ({ "last-event-id": first.seen.at(at)?.id ?? "" });
    const second = await post(`${url}/threads/t1/runs`, { input: "go" }, from(4));
    await second.ended();
    expect(second.seen).toEqual(first.seen.slice(5));
    const again = await fetch(url + first.headers.get("location"), { headers: from(-1) });
    expect(again.status).toBe(204);
  });
});

describe("a busy thread", () => {
  test("refuses another run with 409", async () => {
    const { runs } = await held();
    const refused = await postJson(runs, { input: "me too" });
    expect(refused.status).toBe(409);
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    expect(await refused.json()).toMatchObject({ code: "thread_busy" });
  });

  test("gives way to a run that interrupts, even if the queue is full", async () => {
    const { runs, viewer } = await held({ limits: { queued_runs: 1 } }, [{ say: "Second." }]);
    const waiting = await post(runs, { input: "2", on_busy: "enqueue" });
    const refused = await post(runs, { input: "3", on_busy: "enqueue" });
    expect(refused.status).toBe(429);
    const urgent = await post(runs, { input: "4", on_busy: "interrupt" });
    expect(dataOf(await viewer.ended(), "done")[0]?.status).toBe("cancelled");
    expect(textSeen(await urgent.ended())).toBe("Through.");
    expect(textSeen(await waiting.ended())).toBe("Second.");
  });
});

test("cancelling waits briefly for a tool that takes a moment to end, and the next run can use the thread", async () => {
  const entered = Promise.withResolvers<void>();
  const slow = defineTool({
    ...{ name: "gate", description: "", parameters: z.object({}) },
    async execute(_args, _call, { signal }) {
      entered.resolve();
      await once(signal, "abort");
      await sleep(300);
      throw signal.reason;
    },
  });
  const { url } = await startServer({ script: gated, tools: [slow], agents: WITH_GATE });
  const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
  await entered.promise;
  const cancel = viewer.headers.get("location")?.replace("/events", "/cancel");
  const response = await fetch(url + cancel, { method: "POST" });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ status: "cancelled" });
  expect(dataOf(await viewer.ended(), "done")[0]?.status).toBe("cancelled");
  expect(textSeen(await (await post(`${url}/threads/t1/runs`, { input: "again" })).ended())).toBe("Through.");
});

test("a run that cannot begin fails, and the user's message is still in the thread", async () => {
  const dir = await temporaryFolder();
  await mkdir(join(dir, "data"));
  await writeFile(join(dir, "data", "workspaces"), "no folder can be made here");
  const { url } = await startServer({ dir });
  const events = await (await post(`${url}/threads/t1/runs`, { input: "Hi" })).ended();
  expect(dataOf(events, "error")).toHaveLength(1);
  expect(await saidIn(url, "t1")).toEqual(["Hi"]);
});

test("with `on_disconnect: cancel`, a client that stops waiting for JSON ends its run", async () => {
  const { tool, entered } = gate();
  const { url } = await startServer({ script: gated, agents: WITH_GATE, tools: [tool] });
  const leaving = new AbortController();
  const asked = fetch(`${url}/threads/t1/runs`, {
    method: "POST",
    headers: { accept: "application/json", "content-type": "application/json" },
    body: JSON.stringify({ input: "go", on_disconnect: "cancel" }),
    signal: leaving.signal,
  });
  await entered;
  leaving.abort();
  await expect(asked).rejects.toThrow();
  await expect.poll(() => statusesOf(url, "t1")).toEqual(["cancelled"]);
});

test("a server that stops ends every open stream with a terminal event", async () => {
  const { app, viewer } = await held({ shutdown: { grace: 0.05 } });
  await app.close();
  expect(dataOf(await viewer.ended(), "error")[0]?.code).toBe("shutting_down");
});
