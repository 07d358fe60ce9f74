// Tasks of another agent, with the A2A SDK's own client, against the whole server.

import { TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import type { Script } from "../../../src/agent/models/scripted.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { BEHIND_GATEWAY } from "../../support/gateway.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS } from "../agents.ts";
import {
  ASKS,
  answer,
  assembled,
  clientOf,
  dataIn,
  EXECUTES,
  lastSaid,
  listed,
  named,
  partOf,
  say,
  started,
  taskFrom,
  text,
  textOf,
} from "./client.ts";

describe("another agent", () => {
  test("receives a complete answer, and continues the context", async () => {
    const { client } = await started([{ think: "Hm.", say: "You said {{user}}." }, { say: "And {{user}}." }]);
    const first = await taskFrom(client, say("hello"));
    expect(first.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(lastSaid(first)).toBe("You said hello.");
    const second = await taskFrom(client, say("more", { contextId: first.contextId }));
    expect(lastSaid(second)).toBe("And more.");
    expect(second.contextId).toBe(first.contextId);
    expect(second.id).not.toBe(first.id);
  });

  test("receives an answer as it is written, with the called tools", async () => {
    const { client } = await started([
      { say: "Let me look.", call: [{ tool: "current_datetime", args: { time_zone: "UTC" } }] },
      { think: "Hm.", say: "You said hello to me." },
    ]);
    const { texts, states, tools, pieces } = await assembled(client.sendMessageStream(say("hello")));
    expect(texts).toEqual(["Let me look.", "You said hello to me."]);
    expect(pieces).toBeGreaterThan(3);
    expect(states).toEqual(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    expect(tools).toMatchObject([{ tool: "current_datetime", args: { time_zone: "UTC" } }]);
  });

  test("finds the streamed output in the history, with the ids of its own messages", async () => {
    const { client } = await started([{ say: "Hello." }]);
    const { task } = await assembled(client.sendMessageStream(say("hi", { messageId: "mine" })));
    const whole = await client.getTask({ tenant: "", id: task?.id ?? "" });
    expect(whole.history.map(({ parts }) => textOf(parts))).toEqual(["hi", "Hello."]);
    expect(whole.history[0]?.messageId).toBe("mine");
    expect(lastSaid(whole)).toBe("Hello.");
    const { history } = await client.getTask({ tenant: "", id: whole.id, historyLength: 1 });
    expect(history.map(({ parts }) => textOf(parts))).toEqual(["Hello."]);
    expect((await client.getTask({ tenant: "", id: whole.id, historyLength: 0 })).history).toEqual([]);
  });

  test.each([
    ["in words", text("Yes."), "It ran."],
    ["as data", partOf({ $case: "data", value: { approved: true } }), "It ran."],
    [
      "with other arguments",
      partOf({ $case: "data", value: { approved: true, args: { command: "echo edited" } } }),
      "It was edited.",
    ],
    ["against it", text("Not on a Friday."), "Not on a Friday."],
    [
      "against it as data",
      partOf({ $case: "data", value: { approved: false, reason: "Too late." } }),
      "Too late.",
    ],
  ])("is asked once, and decides %s", async (_, part, words) => {
    const { client } = await started(EXECUTES);
    const asked = await taskFrom(client, say("run it"));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(textOf(asked.status?.message?.parts)).toBe("May it?");
    expect(dataIn(asked.status?.message?.parts)).toMatchObject([
      { interrupts: [{ kind: "approval", name: "execute", args: { command: "echo ran" } }] },
    ]);
    const done = await taskFrom(client, answer(asked, part));
    expect(done.id).toBe(asked.id);
    expect(done.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(lastSaid(done)).toContain(words);
  });

  test("is shown a question with its options, and another client answers it in a stream", async () => {
    const script: Script = ({ messages: read }, call) =>
      call === 0
        ? (ASKS[0] ?? {})
        : { say: JSON.stringify(read.at(-1)).includes("blue") ? "Blue it is." : "?" };
    const { url, client } = await started(script);
    const { states, last, task } = await assembled(client.sendMessageStream(say("ask me")));
    expect(states.at(-1)).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(last).toBe("Which?\n- red\n- blue");
    const fresh = await clientOf(url);
    const found = await fresh.getTask({ tenant: "", id: task?.id ?? "" });
    expect(found.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const done = await assembled(fresh.sendMessageStream(answer(found, "blue")));
    expect(done.texts).toEqual(["Blue it is."]);
    expect(done.task?.id).toBe(found.id);
    expect(new Set(done.states)).toEqual(new Set(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]));
    expect(done.states.at(-1)).toBe("TASK_STATE_COMPLETED");
  });

  test("starts a task without waiting, follows it from anywhere, and reads all text once", async () => {
    const { tool, open, entered } = gate();
    const config = { wires: ["a2a"] };
    const { url } = await startServer({ script: gated, tools: [tool], agents: WITH_GATE, config });
    const client = await clientOf(url);
    const task = await taskFrom(client, say("go", {}, { returnImmediately: true }));
    expect(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"]).toContain(TaskState[task.status?.state ?? 0]);
    await entered;
    const follow = assembled((await clientOf(url)).resubscribeTask({ tenant: "", id: task.id }));
    const { tasks } = await client.listTasks(listed({ status: TaskState.TASK_STATE_WORKING }));
    expect(tasks.map(({ id }) => id)).toEqual([task.id]);
    open();
    const { texts, states } = await follow;
    expect(texts).toEqual(["Wait.", "Through."]);
    expect(states.at(-1)).toBe("TASK_STATE_COMPLETED");
    await expect(assembled(client.resubscribeTask({ tenant: "", id: task.id }))).rejects.toThrow(
      "not active",
    );
  });

  test("cancels an active task and a waiting one, but no other", async () => {
    const { client } = await started([{ say: "a ".repeat(1000), delay_ms: 20 }, ...ASKS]);
    const stream = client.sendMessageStream(say("go", { contextId: "mine" }))[Symbol.asyncIterator]();
    const { value } = await stream.next();
    const id = value?.payload?.$case === "task" ? value.payload.value.id : "";
    const cancelled = await client.cancelTask(named({ id }));
    expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    const end = await assembled({ [Symbol.asyncIterator]: () => stream });
    expect(end.states.at(-1)).toBe("TASK_STATE_CANCELED");
    const waiting = await taskFrom(client, say("ask me", { contextId: "mine" }));
    expect(waiting.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    await expect(assembled(client.resubscribeTask({ tenant: "", id: waiting.id }))).rejects.toThrow(
      "not active",
    );
    await expect(client.sendMessage(say("red", { taskId: waiting.id, contextId: "other" }))).rejects.toThrow(
      "another context",
    );
    expect((await client.cancelTask(named(waiting))).status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    await expect(client.cancelTask(named(waiting))).rejects.toThrow("already ended");
    await expect(client.sendMessage(answer(waiting, "blue"))).rejects.toThrow(
      "Send a message to its context",
    );
  });

  test("sees a task as cancelled if its context has continued without an answer", async () => {
    const { client } = await started([...ASKS, { say: "Never mind." }]);
    const waiting = await taskFrom(client, say("ask me"));
    const next = await taskFrom(client, say("Forget it.", { contextId: waiting.contextId }));
    expect(next.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    const left = await client.getTask({ tenant: "", id: waiting.id });
    expect(left.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  });

  test("receives the provider's error, and the text until then", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { client } = await started([
      { say: "Half", fail },
      { say: "Half", fail },
    ]);
    const streamed = await assembled(client.sendMessageStream(say("go")));
    expect(streamed.states.at(-1)).toBe("TASK_STATE_FAILED");
    expect(streamed.last).toBe("The provider said no.");
    expect(streamed.texts.join("")).toBe("Half");
    const whole = await taskFrom(client, say("go"));
    expect(whole.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(textOf(whole.status?.message?.parts)).toBe("The provider said no.");
    expect(whole.artifacts.map(({ parts }) => textOf(parts))).toEqual(["Half"]);
  });

  test("sends images and data, but no addresses", async () => {
    let seen: unknown;
    const { client } = await started(({ messages: read }) => {
      seen = read.at(-1)?.content;
      return { say: "A dot." };
    });
    const raw = { $case: "raw", value: Buffer.from("not really an image") } as const;
    await client.sendMessage(say({ ...partOf(raw), mediaType: "image/png" }));
    expect(seen).toEqual([{ type: "image", media_type: "image/png", data: raw.value.toString("base64") }]);
    await client.sendMessage(say(partOf({ $case: "data", value: { a: 1 } })));
    expect(seen).toBe('{"a":1}');
    const address = partOf({ $case: "url", value: "https://example.com/a.png" });
    await expect(client.sendMessage(say(address))).rejects.toThrow("fetches nothing");
  });

  test("lists the tasks of a context, page by page", async () => {
    const { client } = await started(() => ({ say: "ok" }));
    const made: string[] = [];
    for (let n = 0; n < 3; n++) made.unshift((await taskFrom(client, say("hi", { contextId: "c1" }))).id);
    await client.sendMessage(say("hi", { contextId: "c2" }));
    const first = await client.listTasks(listed({ contextId: "c1", pageSize: 2 }));
    expect(first.totalSize).toBe(3);
    const second = await client.listTasks(
      listed({ contextId: "c1", pageSize: 2, pageToken: first.nextPageToken }),
    );
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(made);
    expect([first.nextPageToken, second.nextPageToken]).toEqual([expect.stringMatching(/./), ""]);
    expect(first.tasks[0]).toMatchObject({ artifacts: [], history: [] });
    expect((await client.listTasks(listed({}))).totalSize).toBe(4);
    const [past, future] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
    expect((await client.listTasks(listed({ statusTimestampAfter: past }))).totalSize).toBe(4);
    expect((await client.listTasks(listed({ statusTimestampAfter: future }))).totalSize).toBe(0);
  });

  test("starts one task for a message that is sent twice", async () => {
    const { client } = await started([{ say: "Once." }, { say: "Twice." }]);
    const message = say("hi", { contextId: "c1" });
    const first = await taskFrom(client, message);
    expect((await taskFrom(client, message)).id).toBe(first.id);
  });

  test("finds no task of another user or of another agent", async () => {
    const { url } = await startServer({
      script: ASKS,
      agents: AGENTS,
      config: { wires: ["a2a"], ...BEHIND_GATEWAY },
    });
    const ada = await clientOf(url, { user: "ada" });
    const bob = await clientOf(url, { user: "bob" });
    const writer = await clientOf(url, { user: "ada", path: "/a2a/writer/.well-known/agent-card.json" });
    const task = await taskFrom(ada, say("ask me", { contextId: "shared" }));
    for (const stranger of [bob, writer]) {
      const words = `There is no task \`${task.id}\`.`;
      await expect(stranger.getTask({ tenant: "", id: task.id })).rejects.toThrow(words);
      await expect(stranger.cancelTask(named(task))).rejects.toThrow(words);
      await expect(stranger.sendMessage(answer(task, "red"))).rejects.toThrow(words);
      await expect(assembled(stranger.resubscribeTask({ tenant: "", id: task.id }))).rejects.toThrow(words);
      expect((await stranger.listTasks(listed({ contextId: "shared" }))).tasks).toEqual([]);
    }
    const own = await taskFrom(bob, say("hi", { contextId: "shared" }));
    expect(own.history).toHaveLength(2);
    expect((await ada.getTask({ tenant: "", id: task.id })).status?.state).toBe(
      TaskState.TASK_STATE_INPUT_REQUIRED,
    );
  });
});
