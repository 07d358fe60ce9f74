// The streams of LangGraph's streaming protocol, as bytes.

import { describe, expect, test } from "vitest";
import { asUser, BEHIND_GATEWAY } from "../../support/gateway.ts";
import { postJson } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { post, type Viewer } from "../../support/sse.ts";

interface Told {
  event_id: string;
  seq: number;
  method: string;
  params: { namespace: string[]; timestamp: number; data: Record<string, unknown> };
}

const CONTENT = { channels: ["values", "checkpoints", "lifecycle", "input", "messages", "tools"] };
const WATCH = { channels: ["lifecycle", "input"] };

const open = (url: string, body: object = CONTENT, headers: Record<string, string> = {}, thread = "t1") =>
  post(`${url}/langgraph/threads/${thread}/stream/events`, body, headers);
const toldBy = (viewer: Viewer) => viewer.seen.map(({ event }) => event as unknown as Told);
const fits = (wanted: (told: Told) => boolean) => (event: unknown) => wanted(event as Told);
const ends = (viewer: Viewer) =>
  toldBy(viewer).filter(
    ({ method, params }) =>
      method === "lifecycle" &&
      params.namespace.length === 0 &&
      ["completed", "failed", "interrupted"].includes(String(params.data.event)),
  );
const untilEnds = (viewer: Viewer, count: number) => viewer.until(() => ends(viewer).length === count);
const textOf = (viewer: Viewer) =>
  toldBy(viewer)
    .flatMap(({ params: { data } }) => {
      const { delta, content } = data as { delta?: { text?: string }; content?: { text?: string } };
      return data.event === "content-block-finish" ? [] : [delta?.text ?? content?.text ?? ""];
    })
    .join("");
const json = { accept: "application/json", "content-type": "application/json" };
const say = (url: string, input: string, headers = {}) =>
  postJson(`${url}/threads/t1/runs`, { input }, { accept: "application/json", ...headers });

describe("a stream of a thread", () => {
  test("is silent until the thread exists, and sends each of its runs from the first event", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }, { say: "three" }] });
    const viewer = await open(url);
    expect(viewer.status).toBe(200);
    for (const input of ["1", "2", "3"]) await say(url, input);
    await untilEnds(viewer, 3);
    viewer.leave();
    expect(textOf(viewer)).toBe("onetwothree");
    const numbers = toldBy(viewer).map(({ seq }) => seq);
    expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  test("has the same ids and numbers as one with another filter", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }] });
    await say(url, "1");
    const content = await open(url);
    await say(url, "2");
    await untilEnds(content, 2);
    const watcher = await open(url, WATCH);
    const again = await open(url);
    await Promise.all([untilEnds(watcher, 1), untilEnds(again, 1)]);
    for (const viewer of [content, watcher, again]) viewer.leave();
    const idsOf = (viewer: Viewer) => new Map(toldBy(viewer).map(({ event_id, seq }) => [event_id, seq]));
    const known = idsOf(content);
    expect([...idsOf(watcher)].filter(([id, seq]) => known.get(id) !== seq)).toEqual([]);
    expect([...idsOf(again)].filter(([id, seq]) => known.has(id) && known.get(id) !== seq)).toEqual([]);
    expect(toldBy(watcher).map(({ params: { data } }) => data.event)).toEqual(["running", "completed"]);
  });

  test("repeats the newest run piece by piece, and earlier ones block by block", async () => {
    const { url } = await startServer({ script: [{ say: "one two three" }, { say: "four five six" }] });
    await say(url, "1");
    await say(url, "2");
    const viewer = await open(url);
    await untilEnds(viewer, 1);
    viewer.leave();
    expect(textOf(viewer)).toBe("one two threefour five six");
    const starts = toldBy(viewer).filter(({ params }) => params.data.event === "content-block-start");
    expect(starts.map(({ params }) => params.data.content)).toEqual([
      { type: "text", text: "one two three" },
      { type: "text", text: "" },
    ]);
  });

  test("begins after the given number", async () => {
    const { url } = await startServer({ script: [{ say: "one" }, { say: "two" }] });
    await say(url, "1");
    await say(url, "2");
    const whole = await open(url);
    await untilEnds(whole, 1);
    whole.leave();
    const all = toldBy(whole);
    for (const since of [all[0], all[3], all.at(-3)].map((each) => each?.seq ?? 0)) {
      const rest = await open(url, { ...CONTENT, since });
      await rest.until(fits(({ seq }) => seq === all.at(-1)?.seq));
      rest.leave();
      expect(toldBy(rest).map(({ event_id }) => event_id)).toEqual(
        all.filter(({ seq }) => seq > since).map(({ event_id }) => event_id),
      );
    }
  });

  test("of another user's thread is silent, and sends the user's own thread with that id", async () => {
    const { url } = await startServer({
      config: BEHIND_GATEWAY,
      script: ({ messages }) => ({ say: JSON.stringify(messages.at(-1)?.content) }),
    });
    const [ada, bob] = [asUser("ada"), asUser("bob")];
    await say(url, "secret", ada);
    const viewer = await open(url, CONTENT, bob);
    expect(viewer.status).toBe(200);
    const own = await open(url, CONTENT, ada);
    await untilEnds(own, 1);
    own.leave();
    expect(toldBy(viewer)).toEqual([]);
    await say(url, "mine", bob);
    await untilEnds(viewer, 1);
    viewer.leave();
    expect(textOf(viewer)).toBe('"mine"');
    expect(JSON.stringify(toldBy(viewer))).not.toContain("secret");
  });

  test("responds immediately, even if its filter matches nothing in the thread", async () => {
    const { url } = await startServer({ config: { streams: { heartbeat: "1h" } } });
    await say(url, "1");
    const viewer = await open(url, { channels: ["updates"] });
    expect(viewer.status).toBe(200);
    viewer.leave();
  });

  test("is kept open by comments while nothing happens", async () => {
    const { url } = await startServer({ config: { streams: { heartbeat: "50ms" } } });
    const viewer = await open(url);
    await expect.poll(() => viewer.others).toContain(": heartbeat");
    viewer.leave();
  });

  test("is cut off when the server shuts down, because an end would look like the run's", async () => {
    const { url, app } = await startServer();
    const viewer = await open(url);
    await app.close();
    await expect(viewer.ended()).rejects.toThrow();
  });

  test("without a valid filter is refused with the reason", async () => {
    const { url } = await startServer();
    for (const [body, words] of [
      [{}, "channels"],
      [{ channels: [] }, "channels"],
      [{ channels: ["values"], depth: -1 }, "depth"],
      [{ channels: ["values"], since: "yesterday" }, "since"],
    ] as const) {
      const response = await fetch(`${url}/langgraph/threads/t1/stream/events`, {
        method: "POST",
        headers: json,
        body: JSON.stringify(body),
      });
      expect(response.status).toBe(422);
      expect(((await response.json()) as { message: string }).message).toContain(words);
    }
  });
});

test("a stream of a deleted thread is silent, and sends the thread that replaces it", async () => {
  const { url } = await startServer({ script: () => ({ say: "words" }) });
  await say(url, "1");
  const viewer = await open(url);
  await untilEnds(viewer, 1);
  await fetch(`${url}/threads/t1`, { method: "DELETE" });
  await say(url, "2");
  await untilEnds(viewer, 2);
  viewer.leave();
});
