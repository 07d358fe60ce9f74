import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Message, textOf, userMessage } from "../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import type { AgentOptions } from "../../../src/index.ts";
import {
  compaction,
  fileSessions,
  fromPostGeneration,
  fromPreGeneration,
  injectContext,
  sessionHooks,
  usageLogger,
} from "../../../src/skein/adapters/index.ts";
import { agentWith, collect, runtimeWith } from "../../support/library.ts";
import { temporaryFolder } from "../../support/server.ts";

const texts = (messages: readonly Message[] = []) => messages.map(({ content }) => textOf(content));

/** An agent that keeps what its model is shown. It takes one turn with a tool, then answers. */
function listening(options: AgentOptions) {
  const requests: ModelRequest[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    execute: () => "seen",
  });
  const script = (request: ModelRequest) => {
    requests.push(request);
    return requests.length === 1 ? { call: [{ tool: "look" }] } : { say: `answer ${requests.length}` };
  };
  const agent = agentWith(script, { tools: [look], hook_settings: { todos: false }, ...options });
  return { agent, requests };
}

describe("generation hooks", () => {
  test("change the prompt and messages of every model call of the run, not the thread", async () => {
    const { agent, requests } = listening({
      system_prompt: "Be kind.",
      hooks: [
        fromPreGeneration((state) => {
          state.systemPrompt += " And brief.";
        }, injectContext("We are in Graz.")),
        fromPreGeneration((state) => void state.messages.push(userMessage("Mind the gap."))),
      ],
    });
    const handle = runtimeWith().spawn(agent, { input: "Hello" });
    await handle.result;
    expect(requests.map(({ messages }) => texts(messages))).toEqual([
      ["We are in Graz.", "Hello", "Mind the gap."],
      ["We are in Graz.", "Hello", "Mind the gap.", "", "seen"],
    ]);
    expect(requests.map(({ system }) => system.map(({ text }) => text))).toEqual([
      ["Be kind. And brief."],
      ["Be kind. And brief."],
    ]);
    expect(texts(await handle.history())).toEqual(["Hello", "", "seen", "answer 2"]);
  });

  test("share values, and receive the outcome after the run", async () => {
    const heard: unknown[] = [];
    const { agent } = listening({
      hooks: [
        fromPreGeneration(({ values }) => void values.set("began", true)),
        fromPostGeneration(({ values, response, outputMessages, usage, sessionId, userId }) => {
          heard.push(values.get("began"), response?.content, texts(outputMessages), usage?.output_tokens);
          heard.push(sessionId, userId);
        }),
      ],
    });
    await runtimeWith().spawn(agent, { input: "Hello", thread: "s1", user: "ada" }).result;
    expect(heard).toEqual([true, "answer 2", ["", "seen", "answer 2"], 4, "s1", "ada"]);
  });

  test("fail the run before it, and only warn after it", async () => {
    const hooks = [
      fromPostGeneration(
        () => Promise.reject(new Error("late")),
        ({ usage }) => void expect(usage).toBeDefined(),
      ),
    ];
    const late = runtimeWith().spawn(listening({ hooks }).agent, { input: "x" });
    expect((await late.result).status).toBe("success");
    expect(JSON.stringify(await collect(late.events()))).toContain("failed after the run: late");
    const early = listening({ hooks: [fromPreGeneration(() => Promise.reject(new Error("early")))] });
    const { error } = await runtimeWith().spawn(early.agent, { input: "x" }).result;
    expect(error).toMatchObject({ code: "hook_failed", message: expect.stringContaining("early") });
    expect(early.requests).toEqual([]);
  });

  test("compact a long conversation, and fail with the summariser", async () => {
    const long = [userMessage("x".repeat(400)), userMessage("y")];
    const summarize = async (messages: readonly Message[]) => [userMessage(`${messages.length} messages`)];
    const shown = async (threshold: number) => {
      const { agent, requests } = listening({ hooks: [fromPreGeneration(compaction(threshold, summarize))] });
      await runtimeWith().spawn(agent, { input: long }).result;
      return texts(requests[1]?.messages);
    };
    expect(await shown(100)).toEqual(["2 messages", "", "seen"]);
    expect(await shown(1000)).toEqual([...texts(long), "", "seen"]);
    const failing = compaction(1, () => Promise.reject(new Error("no summary")));
    const { agent } = listening({ hooks: [fromPreGeneration(failing)] });
    expect((await runtimeWith().spawn(agent, { input: "x" }).result).status).toBe("error");
  });

  test("log the duration of a generation", async () => {
    const lines: unknown[] = [];
    const logger = { info: (details: object, message: string) => void lines.push([message, details]) };
    const script = [{ say: "ok", usage: { input_tokens: 5, output_tokens: 2 } }];
    const agent = agentWith(script, { hooks: [fromPostGeneration(usageLogger(logger))] });
    await runtimeWith().spawn(agent, { input: "x", thread: "s1" }).result;
    expect(lines).toEqual([["generation complete", { session_id: "s1", input_tokens: 5, output_tokens: 2 }]]);
  });
});

describe("session hooks", () => {
  const withSessions = (folder: string) => {
    const { loader, saver } = sessionHooks(fileSessions(folder));
    return listening({ hooks: [fromPreGeneration(loader), fromPostGeneration(saver)] });
  };

  test("load a conversation from a file into another program, and save it again", async () => {
    const folder = await temporaryFolder();
    await runtimeWith().spawn(withSessions(folder).agent, { input: "one", thread: "s1" }).result;
    const { agent, requests } = withSessions(folder);
    const runtime = runtimeWith();
    await runtime.spawn(agent, { input: "two", thread: "s1" }).result;
    expect(texts(requests[0]?.messages)).toEqual(["one", "", "seen", "answer 2", "two"]);
    // What the thread holds already is not shown twice.
    await runtime.spawn(agent, { input: "three", thread: "s1" }).result;
    const before = ["one", "", "seen", "answer 2", "two", "", "seen", "answer 2"];
    expect(texts(requests.at(-1)?.messages)).toEqual([...before, "three"]);
    const session = await fileSessions(folder).get({ tenant: "default", user: "default" }, "s1");
    expect(texts(session?.messages)).toEqual([...before, "three", "answer 3"]);
    expect(session).toMatchObject({ id: "s1", user_id: "default" });
  });

  test("cannot find another user's session, or a file outside of the folder", async () => {
    const folder = await temporaryFolder();
    await runtimeWith().spawn(withSessions(folder).agent, { input: "one", thread: "s1", user: "ada" }).result;
    const sessions = fileSessions(folder);
    expect(await sessions.get({ tenant: "default", user: "bob" }, "s1")).toBeUndefined();
    expect(await sessions.get({ tenant: "default", user: "../ada" }, "s1")).toBeUndefined();
    await expect(sessions.get({ tenant: "default", user: "ada" }, "../s1")).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("fail the run if a session cannot be read", async () => {
    const folder = await temporaryFolder();
    await runtimeWith().spawn(withSessions(folder).agent, { input: "one", thread: "s1" }).result;
    const [owner = ""] = await readdir(folder);
    await mkdir(join(folder, owner), { recursive: true });
    await writeFile(join(folder, owner, "s1.json"), '{"id": 1}');
    const { status } = await runtimeWith().spawn(withSessions(folder).agent, { input: "two", thread: "s1" })
      .result;
    expect(status).toBe("error");
  });
});
