import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { UserEvent } from "../../src/agent/core/bus.ts";
import { defineTool } from "../../src/agent/core/tool.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { bareServer } from "../support/bare-server.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post, type Viewer, view } from "../support/sse.ts";

const wait = defineTool({
  name: "wait",
  description: "Waits until the run ends.",
  parameters: z.object({}),
  execute: (_args, _call, run) =>
    new Promise<string>((_, reject) => run.signal.addEventListener("abort", () => reject(run.signal.reason))),
});
const WAITING = {
  script: () => ({ call: [{ tool: "wait" }] }),
  tools: [wait],
  agents: "agents: { assistant: { model: 'scripted:test', tools: [wait] } }",
};

/** The user's events that have come so far, each as its frame says. */
function heard({ others }: Viewer): UserEvent[] {
  return others.flatMap((frame) => {
    const [, name, data = ""] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
    if (name === undefined || name === "stream_reset" || name === "server_shutdown") return [];
    const event = UserEvent.parse(JSON.parse(data));
    expect(event.event).toBe(name);
    return [event];
  });
}

/** What became of runs: `<started or ended> <thread> <status>`. */
const ofRuns = (viewer: Viewer) =>
  heard(viewer).flatMap(({ event, data }) =>
    "run_id" in data ? [[event, data.thread_id, "status" in data ? data.status : ""].join(" ").trim()] : [],
  );

const listen = (url: string, query = "") => view(`${url}/events${query}`);

const stop = (url: string, location: string | null) =>
  fetch(url + location?.replace(/\/events$/, "/cancel"), { method: "POST" });

describe("a user who subscribes to events", () => {
  test("receives the start and end of a run, with the ids to find it", async () => {
    const { url } = await startServer();
    const viewer = await listen(url);
    expect(viewer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    const run = await post(`${url}/threads/t1/runs`, { input: "go" });
    const run_id = run.headers.get("location")?.split("/").at(-2);
    const data = { thread_id: "t1", run_id, agent: "assistant" };
    await expect
      .poll(() => heard(viewer))
      .toEqual([
        { event: "run_started", data },
        { event: "run_ended", data: { ...data, status: "success" } },
      ]);
    expect(viewer.seen).toEqual([]);
    viewer.leave();
  });

  test("receives the end of runs that are cancelled, during or before their turn", async () => {
    const { url } = await startServer(WAITING);
    const [viewer, another] = [await listen(url), await listen(url)];
    const first = await post(`${url}/threads/t1/runs`, { input: "go" });
    const second = await post(`${url}/threads/t1/runs`, { input: "go", on_busy: "enqueue" });
    const third = await post(`${url}/threads/t1/runs`, { input: "go", on_busy: "enqueue" });
    await stop(url, second.headers.get("location"));
    await expect.poll(() => ofRuns(viewer)).toEqual(["run_started t1", "run_ended t1 cancelled"]);
    expect(heard(viewer)[1]?.data).toMatchObject({
      run_id: second.headers.get("location")?.split("/").at(-2),
    });
    await stop(url, first.headers.get("location"));
    await expect.poll(() => ofRuns(viewer).slice(2)).toEqual(["run_ended t1 cancelled", "run_started t1"]);
    await stop(url, third.headers.get("location"));
    await expect.poll(() => ofRuns(viewer).slice(4)).toEqual(["run_ended t1 cancelled"]);
    await expect.poll(() => heard(another)).toEqual(heard(viewer));
    for (const each of [viewer, another]) each.leave();
  });

  test("receives the end of a failed run, even before its agent has said anything", async () => {
    const dir = await temporaryFolder();
    await mkdir(join(dir, "data"));
    await writeFile(join(dir, "data", "workspaces"), "no folder can be made here");
    const { url } = await startServer({
      dir,
      script: () => {
        throw new Error("The model is broken.");
      },
      agents:
        "agents: { talker: { model: 'scripted:test' }, worker: { model: 'scripted:test', backend: { type: local } } }",
    });
    const viewer = await listen(url);
    await post(`${url}/threads/t1/runs`, { input: "go" });
    await expect.poll(() => ofRuns(viewer)).toEqual(["run_started t1", "run_ended t1 error"]);
    await post(`${url}/threads/t2/runs`, { input: "go", agent: "worker" });
    await expect.poll(() => ofRuns(viewer).slice(2)).toEqual(["run_started t2", "run_ended t2 error"]);
    viewer.leave();
  });

  const ASKING = `agents: { assistant: { model: "scripted:test", tools: [ask_user] } }`;
  const ask = (question: string) => ({ tool: "ask_user", args: { question } });
  /** What became of questions: `<opened or closed> <id>`. */
  const ofQuestions = (viewer: Viewer) =>
    heard(viewer).flatMap(({ event, data }) => ("id" in data ? [`${event} ${data.id}`] : []));

  test("receives each question once it can be answered, and its end after an answer or another message", async () => {
    const { url } = await startServer({
      agents: ASKING,
      script: [
        { call: [ask("Which?"), ask("When?")] },
        { say: "Done." },
        { call: [ask("Why?")] },
        { say: "So." },
      ],
    });
    const viewer = await listen(url);
    const run = await post(`${url}/threads/t1/runs`, { input: "go" });
    const opened = ["interrupt_opened question_call_1_1", "interrupt_opened question_call_1_2"];
    await expect.poll(() => ofQuestions(viewer)).toEqual(opened);
    const run_id = run.headers.get("location")?.split("/").at(-2);
    expect(heard(viewer).at(-1)?.data).toEqual({
      ...{ thread_id: "t1", run_id, agent: "assistant" },
      ...{ id: "question_call_1_2", kind: "question", name: "ask_user" },
    });
    const answers = ["question_call_1_1", "question_call_1_2"].map((id) => ({
      ...{ id, decision: "respond", message: "That." },
    }));
    await (await post(`${url}/threads/t1/runs/${run_id}/resume`, { answers })).ended();
    const closed = [...opened, "interrupt_closed question_call_1_1", "interrupt_closed question_call_1_2"];
    await expect.poll(() => ofQuestions(viewer)).toEqual(closed);
    await (await post(`${url}/threads/t1/runs`, { input: "again" })).ended();
    const asked = [...closed, "interrupt_opened question_call_3_1"];
    await expect.poll(() => ofQuestions(viewer)).toEqual(asked);
    await (await post(`${url}/threads/t1/runs`, { input: "never mind" })).ended();
    await expect.poll(() => ofQuestions(viewer)).toEqual([...asked, "interrupt_closed question_call_3_1"]);
    viewer.leave();
  });

  test("receives the creation, renaming, forking, clearing and deletion of threads", async () => {
    const { url } = await startServer();
    const viewer = await listen(url);
    const json = { "content-type": "application/json" };
    const change = (method: string, path: string, body?: object) =>
      fetch(`${url}/threads${path}`, {
        method,
        ...(body ? { headers: json, body: JSON.stringify(body) } : {}),
      });
    await change("POST", "", { id: "t1" });
    await change("PATCH", "/t1", { title: "Mine" });
    await change("POST", "/t1/fork", { id: "t2" });
    await change("DELETE", "/t1/messages");
    await change("DELETE", "/t1");
    await change("DELETE", "/t1");
    const changes = () =>
      heard(viewer).map(({ data }) => ("change" in data ? `${data.thread_id} ${data.change}` : ""));
    await expect
      .poll(changes)
      .toEqual(["t1 created", "t1 updated", "t2 created", "t1 cleared", "t1 deleted"]);
    viewer.leave();
  });

  test("is notified when the server shuts down", async () => {
    const { url, app } = await startServer();
    const viewer = await listen(url);
    await app.close();
    await viewer.ended();
    expect(viewer.others.at(-1)).toMatch(/^event: server_shutdown/);
  });

  test("cannot ask for a replay", async () => {
    const { url } = await startServer();
    expect((await fetch(`${url}/events?after=3`)).status).toBe(400);
  });
});

const OWNER = { tenant: "default", user: "default" };
const started = (n: number): UserEvent => ({
  event: "run_started",
  data: { thread_id: `t${n}`, run_id: `run_${n}`, agent: "a" },
});

test("a user who falls behind receives a reset, and then the events after it", async () => {
  const stores = createMemoryStores();
  const url = await bareServer(stores);
  const { bus } = stores;
  const viewer = await listen(url);
  bus.publish(OWNER, {
    event: "backend_status",
    data: { name: "w", type: "t", status: "running", workdir: "/w" },
  });
  await expect.poll(() => heard(viewer)).toHaveLength(1);
  // All in one tick of the event loop: no reader is quick enough.
  for (let n = 0; n <= 1001; n++) bus.publish(OWNER, started(n));
  await expect.poll(() => viewer.others.at(-1)).toMatch(/^event: stream_reset\ndata: .*events_expired/);
  bus.publish(OWNER, started(2000));
  await expect.poll(() => heard(viewer).at(-1)).toEqual(started(2000));
  expect(heard(viewer)).toHaveLength(2);
  viewer.leave();
});
