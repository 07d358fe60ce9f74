import { describe, expect, test } from "vitest";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import { names, textSeen } from "../support/drain.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { numbers, post, view } from "../support/sse.ts";

const runsIn = (ids: readonly { id: string }[]) => [...new Set(ids.map(({ id }) => id.split(":")[0]))];
const json = { accept: "application/json", "content-type": "application/json" };
const say = (url: string, input: string) =>
  fetch(`${url}/threads/t1/runs`, { method: "POST", headers: json, body: JSON.stringify({ input }) });
const isDone = (run: string | undefined) => (event: { event: string; run_id?: string | undefined }) =>
  event.event === "done" && event.run_id === run;

describe("a viewer of a thread", () => {
  test("sees every run from its first event to its last, one after another", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }, { say: "three" }] });
    await fetch(`${url}/threads`, { method: "POST", headers: json, body: '{"id":"t1"}' });
    const viewer = await view(`${url}/threads/t1/events`);
    for (const input of ["1", "2", "3"]) await say(url, input);
    await viewer.until(
      (event) =>
        event.event === "done" && viewer.seen.filter((each) => each.event.event === "done").length === 3,
    );
    viewer.leave();
    expect(textSeen(viewer.seen.map(({ event }) => event))).toBe("onetwothree");
    expect(runsIn(viewer.seen)).toHaveLength(3);
    for (const run of runsIn(viewer.seen)) {
      const own = viewer.seen.filter(({ id }) => id.startsWith(`${run}:`));
      expect(numbers(own)).toEqual(own.map((_, index) => index + 1));
      expect(checkGrammar(own.map(({ event }) => event))).toEqual([]);
    }
  });

  test("that reconnects with one cursor misses no run and sees nothing twice", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }, { say: "three" }] });
    const first = await post(`${url}/threads/t1/runs`, { input: "1" });
    await first.ended();
    const cursor = first.seen[3]?.id ?? "";
    await say(url, "2");
    await say(url, "3");
    const viewer = await view(`${url}/threads/t1/events`, { headers: { "last-event-id": cursor } });
    await viewer.until((event) => event.event === "done" && runsIn(viewer.seen).length === 3);
    viewer.leave();
    expect(numbers(viewer.seen).slice(0, 2)).toEqual([5, 6]);
    expect(names(viewer.seen.map(({ event }) => event)).filter((name) => name === "run_start")).toHaveLength(
      2,
    );
  });

  test("sees runs in the order in which they start, even one that moved to the front", async () => {
    const { tool, entered } = gate();
    const script = [...gated.slice(0, 1), { say: "three" }, { say: "two" }];
    const { url } = await startServer({ script, tools: [tool], agents: WITH_GATE });
    const first = await post(`${url}/threads/t1/runs`, { input: "1" });
    await entered;
    const viewer = await view(`${url}/threads/t1/events`);
    const queued = await post(`${url}/threads/t1/runs`, { input: "2", on_busy: "enqueue" });
    const front = await post(`${url}/threads/t1/runs`, { input: "3", on_busy: "interrupt" });
    const idOf = (started: typeof first) => started.headers.get("location")?.split("/").at(-2);
    await viewer.until(isDone(idOf(queued)));
    viewer.leave();
    expect(runsIn(viewer.seen)).toEqual([first, front, queued].map(idOf));
  });

  test("sees nothing of deleted messages", async () => {
    const config = { retention: { events: "1ms" } };
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }], config });
    await say(url, "1");
    const viewer = await view(`${url}/threads/t1/events?heartbeat=named`);
    await say(url, "2");
    await viewer.until(({ event }) => event === "done");
    viewer.leave();
    expect(viewer.others.filter((frame) => frame.includes("stream_reset"))).toEqual([]);
    expect(textSeen(viewer.seen.map(({ event }) => event))).toBe("two");
  });

  test("reaches the end when the thread is deleted, even if another one with the same id exists by then", async () => {
    const { url } = await startServer({ script: () => ({ say: "ok" }) });
    await say(url, "1");
    const viewer = await view(`${url}/threads/t1/events`);
    await fetch(`${url}/threads/t1`, { method: "DELETE" });
    await say(url, "2");
    expect(await viewer.ended()).toEqual([]);
  });

  test("cannot follow an unknown thread, or start at an unknown run", async () => {
    const { url } = await startServer();
    expect((await fetch(`${url}/threads/t1/events`)).status).toBe(404);
    await (await post(`${url}/threads/t1/runs`, { input: "1" })).ended();
    const foreign = { headers: { "last-event-id": "run_0:1-1" } };
    expect((await fetch(`${url}/threads/t1/events`, foreign)).status).toBe(404);
    expect((await fetch(`${url}/threads/t1/events?after=12`)).status).toBe(400);
  });
});
