import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import type { App } from "../../src/app.ts";
import { textSeen } from "../support/drain.ts";
import { startServer } from "../support/server.ts";
import { numbers, post, view } from "../support/sse.ts";

const wait = defineTool({
  name: "wait",
  description: "Waits until the run ends.",
  parameters: z.object({}),
  execute: (_args, _call, run) =>
    new Promise<string>((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason))),
});
const WAITING = {
  script: [{ call: [{ tool: "wait" }] }],
  tools: [wait],
  agents: "agents: { assistant: { model: 'scripted:test', tools: [wait] } }",
};

describe("silence", () => {
  test("is broken by a comment, so no proxy drops the connection", async () => {
    const { url } = await startServer({ ...WAITING, config: { streams: { heartbeat: 0.05 } } });
    const viewer = await post(`${url}/threads/t1/runs`, { input: "go" });
    await expect.poll(() => viewer.others).toContain(": heartbeat");
    viewer.leave();
  });

  test("is broken by a named event for browser code that requests it", async () => {
    const { url } = await startServer({ ...WAITING, config: { streams: { heartbeat: 0.05 } } });
    const starter = await post(`${url}/threads/t1/runs`, { input: "go" });
    const viewer = await view(`${url}${starter.headers.get("location")}?heartbeat=named`);
    await expect.poll(() => viewer.others.join()).toContain("event: heartbeat");
    viewer.leave();
    starter.leave();
  });

  test("is measured from the last event, so frequent events need no heartbeats between them", async () => {
    const { url } = await startServer({
      script: () => ({ say: "ok" }),
      config: { streams: { heartbeat: 10 } },
    });
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const viewer = await view(`${url}/events`);
    const ends = () => viewer.others.filter((block) => block.startsWith("event: run_ended")).length;
    for (const run of [1, 2, 3]) {
      vi.advanceTimersByTime(9_000);
      await (await post(`${url}/threads/t1/runs`, { input: "go" })).ended();
      await expect.poll(ends).toBe(run);
    }
    expect(viewer.others.join("\n")).not.toContain("heartbeat");
    vi.advanceTimersByTime(10_000);
    await expect.poll(() => viewer.others.at(-1)).toBe(": heartbeat");
    viewer.leave();
  });
});

describe("a viewer that stops reading", () => {
  test("does not delay the run or another viewer, is disconnected, and can return to its cursor", async () => {
    // More than the kernel holds for a socket, in fewer events than a run keeps.
    const words = `${"x".repeat(700)} `.repeat(15_000);
    const { url, app } = await startServer({ script: [{ say: words }], config: { streams: { stall: 5 } } });
    const background = await fetch(`${url}/threads/t1/runs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "go", background: true }),
    });
    const location = background.headers.get("location") ?? "";
    const stalled = await stalledViewer(app, url, location);
    const events = await (await view(url + location)).ended();
    expect(textSeen(events).length).toBe(words.length);
    await stalled.disconnected;
    const seen = [...(await stalled.rest()).matchAll(/^id: (.*)$/gm)].map((match) => match[1] ?? "");
    const last = seen.at(-2) ?? "";
    const back = await view(url + location, { headers: { "last-event-id": last } });
    await back.ended();
    expect(numbers(back.seen)[0]).toBe(Number(last.split("-").at(-1)) + 1);
    expect(numbers(back.seen).at(-1)).toBe(events.length);
  });
});

describe("a run with more events than are kept", () => {
  test("can still be followed: one reset reports the gap, and the rest follows", async () => {
    const { url } = await startServer({ script: [{ say: "w ".repeat(25_000) }] });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    await first.ended();
    const late = await view(url + first.headers.get("location"));
    const events = await late.ended();
    expect(late.others[0]).toMatch(/^event: stream_reset\ndata: .*events_expired/);
    expect(events.at(-1)?.event).toBe("done");
    const seen = numbers(late.seen);
    expect(seen).toEqual(seen.map((_, index) => (seen[0] ?? 0) + index));
  });
});

describe("many viewers", () => {
  test("of one run all see the same, whenever they connect", async () => {
    const { url } = await startServer({ script: [{ say: "a b c d e f g h i j ".repeat(20), delay_ms: 1 }] });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    const location = url + first.headers.get("location");
    const others = [];
    for (let count = 0; count < 20; count++) {
      await first.until((event) => event.event === "on_chat_model_stream");
      others.push(await view(location));
    }
    const all = await Promise.all([first, ...others].map((viewer) => viewer.ended()));
    expect(all[0]?.at(-1)?.event).toBe("done");
    for (const events of all) expect(events).toEqual(all[0]);
  });

  test("are limited, and further ones are asked to retry later", async () => {
    const { url } = await startServer({ ...WAITING, config: { limits: { streams: 1 } } });
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    const second = await fetch(url + first.headers.get("location"));
    expect(second.status).toBe(503);
    expect(second.headers.get("retry-after")).toBe("1");
    expect((await post(`${url}/threads/t2/runs`, { input: "go" })).status).toBe(503);
    expect((await fetch(`${url}/threads/t2`)).status).toBe(404);
    first.leave();
    await expect.poll(async () => (await view(url + first.headers.get("location"))).status).toBe(200);
  });
});

/** A viewer that asks and then reads nothing. `rest` is what had reached its side when the server disconnected it. */
async function stalledViewer({ server: { server } }: App, url: string, path: string) {
  const { port, host } = new URL(url);
  const taken = once(server, "connection") as Promise<[Socket]>;
  const socket: Socket = await new Promise((resolve) => {
    const opened = connect(Number(port), "127.0.0.1", () => resolve(opened));
  });
  socket.pause();
  socket.on("error", () => {});
  const [end] = await taken;
  const disconnected = once(end, "close");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return {
    disconnected,
    async rest(): Promise<string> {
      let text = "";
      socket.on("data", (chunk) => (text += String(chunk)));
      socket.resume();
      await new Promise((resolve) => socket.once("close", resolve));
      return text;
    },
  };
}
