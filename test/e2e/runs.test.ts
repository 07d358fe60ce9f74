import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { dataOf, names, textSeen } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { numbers, post, view } from "../support/sse.ts";

const json = (response: Response) => response.json() as Promise<Record<string, unknown>>;
const getJson = async (url: string) => json(await fetch(url));
const wait = { accept: "application/json", "content-type": "application/json" };

function expectWellFormed(events: StreamEvent[]) {
  expect(checkGrammar(events)).toEqual([]);
}

describe("POST /threads/:id/runs", () => {
  test("creates the thread, streams the run, and adds the messages to the thread", async () => {
    const { url } = await startServer({ script: [{ say: "Hello, I am here." }] });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "Hi" });
    expect(viewer.headers.get("content-type")).toBe("text/event-stream");
    expect(viewer.headers.get("x-accel-buffering")).toBe("no");
    const events = await viewer.ended();
    expectWellFormed(events);
    expect(textSeen(events)).toBe("Hello, I am here.");
    const run_id = viewer.headers.get("location")?.split("/").at(-2);
    for (const event of events.filter(({ event }) => event !== "on_chat_model_stream"))
      expect(event).toMatchObject({ thread_id: "t1", run_id });
    expect(numbers(viewer.seen)).toEqual(viewer.seen.map((_, index) => index + 1));
    const { items } = (await getJson(`${url}/threads/t1/messages`)) as {
      items: { role: string; content: string }[];
    };
    expect(items.map(({ role, content }) => [role, content])).toEqual([
      ["user", "Hi"],
      ["assistant", "Hello, I am here."],
    ]);
  });

  test("waits for the end and returns the run with its messages if JSON is requested", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }] });
    const start = (input: string) =>
      fetch(`${url}/threads/t1/runs`, { method: "POST", headers: wait, body: JSON.stringify({ input }) });
    await start("first");
    const response = await start("second");
    expect(response.status).toBe(200);
    const run = await json(response);
    expect(run).toMatchObject({ status: "success", stop_reason: "end_turn", thread_id: "t1" });
    expect((run.messages as { content: string }[]).map((message) => message.content)).toEqual([
      "second",
      "two",
    ]);
  });

  test("returns 202 immediately in the background, and the run can be followed from the start", async () => {
    const { url } = await startServer();
    const response = await fetch(`${url}/threads/t1/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "Hi", background: true }),
    });
    expect(response.status).toBe(202);
    const location = response.headers.get("location") ?? "";
    expect(location).toBe(`/threads/t1/runs/${(await json(response)).id}/events`);
    const events = await (await view(url + location)).ended();
    expectWellFormed(events);
    expect(names(events).at(-1)).toBe("done");
  });

  test("outlives its connection, and a returning viewer sees every event exactly once", async () => {
    const { tool, open } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    const { id } = await first.until((event) => event.event === "on_tool_start");
    const events = first.headers.get("location") ?? "";
    first.leave();
    open();
    const second = await view(url + events, { headers: { "last-event-id": id } });
    await second.ended();
    const before = first.seen.slice(0, first.seen.findIndex((seen) => seen.id === id) + 1);
    const all = [...before, ...second.seen];
    expect(numbers(all)).toEqual(all.map((_, index) => index + 1));
    expectWellFormed(all.map(({ event }) => event));
    const whole = await (await view(url + events)).ended();
    expect(all.map(({ event }) => event)).toEqual(whole);
  });

  test("ends with its connection if the client requests that", async () => {
    const { tool, entered } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go", on_disconnect: "cancel" });
    await entered;
    viewer.leave();
    await expect.poll(async () => (await getJson(`${url}/threads/t1`)).status).toBe("idle");
    const { items } = (await getJson(`${url}/threads/t1/runs`)) as { items: { status: string }[] };
    expect(items[0]?.status).toBe("cancelled");
  });

  test("returns 204 for a run that has ended and was read to its end", async () => {
    const { url } = await startServer();
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await viewer.ended();
    const last = viewer.seen.at(-1)?.id ?? "";
    const again = await fetch(url + viewer.headers.get("location"), { headers: { "last-event-id": last } });
    expect(again.status).toBe(204);
  });

  test("rejoins the run of the same idempotency key instead of starting another, even with another valid body", async () => {
    const { url } = await startServer({ script: [{ say: "only once" }] });
    const key = { "idempotency-key": "k1" };
    const first = await (await post(`${url}/threads/t1/runs`, { input: "go" }, key)).ended();
    const second = await (await post(`${url}/threads/t1/runs`, { input: "come" }, key)).ended();
    expect(second).toEqual(first);
    expect((await post(`${url}/threads/t1/runs`, { input: 7 }, key)).status).toBe(400);
    expect(((await getJson(`${url}/threads/t1/runs`)) as { items: unknown[] }).items).toHaveLength(1);
  });

  test("continues the run of a POST that is repeated with Last-Event-ID", async () => {
    const { url } = await startServer({ script: [{ say: "a b c d" }] });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    await first.ended();
    const middle = first.seen[4]?.id ?? "";
    const second = await post(`${url}/threads/t1/runs`, { input: "go" }, { "last-event-id": middle });
    await second.ended();
    expect(second.seen).toEqual(first.seen.slice(5));
  });
});

describe("a busy thread", () => {
  test("refuses another run with 409 and names the active one", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await entered;
    const refused = await fetch(`${url}/threads/t1/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "me too" }),
    });
    expect(refused.status).toBe(409);
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    const problem = await json(refused);
    expect(problem.code).toBe("thread_busy");
    open();
    await viewer.ended();
  });

  test("queues runs in order", async () => {
    const { tool, open, entered } = gate();
    const script = [...gated, { say: "second" }, { say: "third" }];
    const { url } = await startServer({ script, tools: [tool], agents: WITH_GATE });
    const first = await post(`${url}/threads/t1/runs`, { input: "1" });
    await entered;
    const second = await post(`${url}/threads/t1/runs`, { input: "2", on_busy: "enqueue" });
    const third = await post(`${url}/threads/t1/runs`, { input: "3", on_busy: "enqueue" });
    open();
    for (const viewer of [first, second, third]) expectWellFormed(await viewer.ended());
    const { items } = (await getJson(`${url}/threads/t1/messages`)) as {
      items: { role: string; content: string }[];
    };
    expect(items.filter(({ role }) => role !== "tool").map(({ content }) => content)).toEqual([
      ..."1".split(" "),
      "Wait.",
      "Through.",
      "2",
      "second",
      "3",
      "third",
    ]);
  });

  test("gives way to a run that interrupts, and keeps the work so far", async () => {
    const { tool, entered } = gate();
    const script = [{ say: "Wait.", call: [{ tool: "gate" }] }, { say: "As you wish." }];
    const { url } = await startServer({ script, tools: [tool], agents: WITH_GATE });
    const first = await post(`${url}/threads/t1/runs`, { input: "1" });
    await entered;
    const second = await post(`${url}/threads/t1/runs`, { input: "stop that", on_busy: "interrupt" });
    expect(dataOf(await first.ended(), "done")[0]?.status).toBe("cancelled");
    expect(textSeen(await second.ended())).toBe("As you wish.");
  });

  test("gives way to a run that interrupts, even if the queue is full", async () => {
    const { tool, entered } = gate();
    const script = [{ say: "Wait.", call: [{ tool: "gate" }] }, { say: "First." }, { say: "Second." }];
    const config = { limits: { queued_runs: 1 } };
    const { url } = await startServer({ script, tools: [tool], agents: WITH_GATE, config });
    const running = await post(`${url}/threads/t1/runs`, { input: "1" });
    await entered;
    const waiting = await post(`${url}/threads/t1/runs`, { input: "2", on_busy: "enqueue" });
    const refused = await post(`${url}/threads/t1/runs`, { input: "3", on_busy: "enqueue" });
    expect(refused.status).toBe(429);
    const urgent = await post(`${url}/threads/t1/runs`, { input: "4", on_busy: "interrupt" });
    expect(dataOf(await running.ended(), "done")[0]?.status).toBe("cancelled");
    expect(textSeen(await urgent.ended())).toBe("First.");
    expect(textSeen(await waiting.ended())).toBe("Second.");
  });
});

describe("stopping and steering", () => {
  test("cancelling ends a running tool immediately and leaves a thread that the next turn can use", async () => {
    const { tool, entered } = gate();
    const { url } = await startServer({ script: [...gated], tools: [tool], agents: WITH_GATE });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await entered;
    const cancel = viewer.headers.get("location")?.replace("/events", "/cancel");
    const response = await fetch(url + cancel, { method: "POST" });
    expect(response.status).toBe(200);
    expect((await json(response)).status).toBe("cancelled");
    const events = await viewer.ended();
    expectWellFormed(events);
    expect(dataOf(events, "done")[0]?.status).toBe("cancelled");
    const next = await (await post(`${url}/threads/t1/runs`, { input: "again" })).ended();
    expect(textSeen(next)).toBe("Through.");
  });

  test("cancelling waits briefly for a tool that takes a moment to end, and returns the outcome", async () => {
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
    expect((await json(response)).status).toBe("cancelled");
  });

  test("a run that has ended cannot be cancelled, and the error says so", async () => {
    const { url } = await startServer();
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await viewer.ended();
    const location = viewer.headers.get("location")?.replace("/events", "/cancel");
    const response = await fetch(url + location, { method: "POST" });
    expect(response.status).toBe(409);
    expect((await json(response)).code).toBe("run_not_active");
  });

  test("a steering message is added before the next model call", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({
      script: (request) =>
        request.messages.some((message) => message.role === "tool")
          ? { say: `last: ${String(request.messages.at(-1)?.content)}` }
          : { call: [{ tool: "gate" }] },
      tools: [tool],
      agents: WITH_GATE,
    });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await entered;
    const location = viewer.headers.get("location")?.replace("/events", "/messages");
    const response = await fetch(url + location, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "in French" }),
    });
    expect(response.status).toBe(202);
    open();
    expect(textSeen(await viewer.ended())).toBe("last: in French");
  });
});

test("a run that cannot begin fails, and the user's message is still in the thread", async () => {
  const dir = await temporaryFolder();
  await mkdir(join(dir, "data"));
  await writeFile(join(dir, "data", "workspaces"), "no folder can be made here");
  const { url } = await startServer({ dir });
  const events = await (await post(`${url}/threads/t1/runs`, { input: "Hi" })).ended();
  expectWellFormed(events);
  expect(dataOf(events, "error")).toHaveLength(1);
  const { items } = (await getJson(`${url}/threads/t1/messages`)) as { items: { content: string }[] };
  expect(items.map(({ content }) => content)).toEqual(["Hi"]);
});

describe("a server that stops", () => {
  test("ends every open stream with a terminal event", async () => {
    const { tool, entered } = gate();
    const { url, app } = await startServer({
      script: gated,
      tools: [tool],
      agents: WITH_GATE,
      config: { shutdown: { grace: 0.05 } },
    });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await entered;
    await app.close();
    const events = await viewer.ended();
    expectWellFormed(events);
    expect(dataOf(events, "error")[0]?.code).toBe("shutting_down");
  });
});
