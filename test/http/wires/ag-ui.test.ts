// AG-UI's own client, `HttpAgent`, in its current version and the one that CopilotKit brings, against the whole server.

import { type AgentSubscriber, HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import { HttpAgent as OldHttpAgent } from "ag-ui-client-0";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/core/tool.ts";
import type { Script, Turn } from "../../../src/models/scripted.ts";
import { type ServerOptions, startServer } from "../../support/server.ts";
import { HELPED } from "../../support/team.ts";
import { headersOf } from "../things.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;

interface PageOptions {
  readonly threadId?: string;
  readonly route?: "run" | "connect";
  readonly headers?: Record<string, string>;
}

/** What the two versions have in common, as the current one declares it. */
type Agent = Pick<
  HttpAgent,
  | "messages"
  | "state"
  | "pendingInterrupts"
  | "addMessage"
  | "setMessages"
  | "runAgent"
  | "abortRun"
  | "threadId"
>;

const VERSIONS = [
  ["1.0.0", HttpAgent],
  ["0.0.59", OldHttpAgent as unknown as typeof HttpAgent],
] as const;

const newAgent = (
  Client: typeof HttpAgent,
  url: string,
  { threadId = "t1", route = "run", headers = {} }: PageOptions = {},
): Agent => new Client({ url: `${url}/ag-ui/agent/assistant/${route}`, threadId, headers });

async function say(agent: Agent, content: string, parameters?: RunAgentParameters, seen?: AgentSubscriber) {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return agent.runAgent(parameters, seen);
}

/** A page that opens the thread again. */
async function reopened(Client: typeof HttpAgent, url: string): Promise<Agent> {
  const page = newAgent(Client, url, { route: "connect" });
  await page.runAgent();
  const agent = newAgent(Client, url);
  agent.setMessages(page.messages);
  Object.assign(agent, { state: page.state, pendingInterrupts: page.pendingInterrupts });
  return agent;
}

const texts = ({ messages }: Agent) =>
  messages.flatMap(({ role, content }) => (typeof content === "string" ? [`${role}: ${content}`] : []));

/** What a reader sees of messages: the same when they are streamed and when they are read later. */
const essence = ({ messages }: Agent) =>
  messages.map((message) => ({
    ...{ id: message.id, role: message.role, content: message.content },
    calls:
      message.role === "assistant"
        ? message.toolCalls?.map(({ id, function: made }) => ({ id, made }))
        : undefined,
    of: message.role === "tool" ? message.toolCallId : undefined,
  }));

const callsOf = ({ messages }: Agent) =>
  messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []));

const answering = (agent: Agent, payload: unknown): RunAgentParameters => ({
  resume: agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })),
});

const runsOf = async (url: string, thread = "t1") =>
  (
    (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as {
      items: { id: string; status: string }[];
    }
  ).items;

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setImmediate(resolve));
}

describe.each(VERSIONS)("HttpAgent %s", (version, Client) => {
  async function started(script: readonly Turn[] | Script, options: ServerOptions = {}) {
    const server = await startServer({ script, agents: AGENTS, ...options });
    return { ...server, agent: newAgent(Client, server.url) };
  }

  test("shows what the agent thinks and says as it comes, and finds the same after a reload", async () => {
    const { url, agent } = await started([{ think: "Let me see.", say: "You said {{user}}." }]);
    const pieces: string[] = [];
    let usage: unknown;
    await say(agent, "hello there, you", undefined, {
      onTextMessageContentEvent: ({ event }) => void pieces.push(event.delta),
      onRunFinishedEvent: ({ event }) => {
        usage = event.usage;
      },
    });
    expect(texts(agent)).toEqual([
      "user: hello there, you",
      "reasoning: Let me see.",
      "assistant: You said hello there, you.",
    ]);
    expect(pieces.length).toBeGreaterThan(3);
    expect(usage).toMatchObject([{ outputTokens: 7, totalTokens: 7 }]);
    expect(essence(await reopened(Client, url))).toEqual(essence(agent));
  });

  test("shows tools of the server with their results, and todos and files in its state", async () => {
    const { url, agent } = await started([
      {
        say: "I work.",
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Write it", status: "done" }] } },
          { tool: "write_file", args: { path: "a/b~c.txt", content: "x\n" } },
        ],
      },
      { say: "Done." },
    ]);
    await say(agent, "work");
    expect(callsOf(agent).map((call) => [call.function.name, JSON.parse(call.function.arguments)])).toEqual([
      ["write_todos", { todos: [{ id: "1", title: "Write it", status: "done" }] }],
      ["write_file", { path: "a/b~c.txt", content: "x\n" }],
    ]);
    expect(agent.messages.filter(({ role }) => role === "tool")).toMatchObject(
      callsOf(agent).map(({ id }) => ({ toolCallId: id })),
    );
    const { todos, files, ...rest } = agent.state as { todos: unknown; files: Record<string, string> };
    expect(todos).toEqual([{ id: "1", content: "Write it", status: "completed" }]);
    expect(Object.entries(files)).toEqual([[expect.stringMatching(/a\/b~c\.txt$/), "x\n"]]);
    expect(rest).toEqual({});
    const again = await reopened(Client, url);
    expect(essence(again)).toEqual(essence(agent));
    expect(again.state).toEqual(agent.state);
  });

  test("approves a call, which then runs", async () => {
    const { agent } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "It said hi." },
    ]);
    await say(agent, "run it");
    expect(agent.pendingInterrupts).toMatchObject([
      { reason: "tool_call", message: "May it?", toolCallId: callsOf(agent)[0]?.id },
    ]);
    await agent.runAgent(answering(agent, { approved: true }));
    expect(agent.pendingInterrupts).toEqual([]);
    expect(texts(agent)).toEqual([
      "user: run it",
      "assistant: May I?",
      expect.stringMatching(/^tool: .*hi/s),
      "assistant: It said hi.",
    ]);
    expect(callsOf(agent)).toHaveLength(1);
  });

  test("denies a call with a reason, which the model reads", async () => {
    let read = "";
    const { agent } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0
        ? { call: [{ tool: "execute", args: { command: "echo hi" } }] }
        : { say: "As you like." };
    });
    await say(agent, "run it");
    await agent.runAgent(answering(agent, { approved: false, reason: "Not today." }));
    expect(read).toContain("Not today.");
    expect(texts(agent).at(-1)).toBe("assistant: As you like.");
  });

  test("changes the arguments of a call that it approves", async () => {
    const { agent } = await started([
      { call: [{ tool: "execute", args: { command: "echo one" } }] },
      { say: "Done." },
    ]);
    await say(agent, "run it");
    await agent.runAgent(answering(agent, { approved: true, editedArgs: { command: "echo two" } }));
    expect(texts(agent)).toContainEqual(expect.stringMatching(/^tool: .*two/s));
  });

  test("answers a question, also after a reload", async () => {
    const { url, agent } = await started([
      { call: [{ tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] } }] },
      { say: "Blue it is." },
    ]);
    await say(agent, "ask me");
    expect(agent.pendingInterrupts).toMatchObject([{ reason: "input_required", message: "Which?" }]);
    const again = await reopened(Client, url);
    expect(again.pendingInterrupts).toEqual(agent.pendingInterrupts);
    expect(JSON.stringify(again.pendingInterrupts[0]?.responseSchema)).toContain('["red","blue"]');
    await again.runAgent(answering(again, { answer: "blue" }));
    expect(texts(again).slice(-2)).toEqual(["tool: blue", "assistant: Blue it is."]);
  });

  test("carries out a tool of its own, and the model reads the result", async () => {
    let read = "";
    const tools = [{ name: "where", description: "Where the user is.", parameters: { type: "object" } }];
    const { url, agent } = await started(({ messages }, call) => {
      read = JSON.stringify(messages);
      return call === 0 ? { call: [{ tool: "where" }] } : { say: "Vienna, then." };
    });
    await say(agent, "where am I?", { tools });
    const [call] = callsOf(agent);
    expect(call?.function.name).toBe("where");
    expect(agent.messages.some(({ role }) => role === "tool")).toBe(false);
    agent.addMessage({ id: "r1", role: "tool", toolCallId: call?.id ?? "", content: '{"city":"Vienna"}' });
    await agent.runAgent({ tools });
    expect(read).toContain("Vienna");
    expect(texts(agent).slice(-1)).toEqual(["assistant: Vienna, then."]);
    expect(await runsOf(url)).toHaveLength(2);
    expect(essence(await reopened(Client, url))).toEqual(essence(agent));
  });

  test("stops the run when it leaves, and takes the next message", async () => {
    const { url, agent } = await started([{ say: "a ".repeat(500), delay_ms: 20 }, { say: "Here again." }]);
    const sending = say(agent, "go");
    await until(() => texts(agent).length > 1);
    agent.abortRun();
    await sending;
    await until(async () => (await runsOf(url))[0]?.status === "cancelled");
    const again = await reopened(Client, url);
    await say(again, "and now?");
    expect(texts(again).at(-1)).toBe("assistant: Here again.");
  });

  test("lets the run continue when it leaves, if it asks for that", async () => {
    const gate = Promise.withResolvers<void>();
    const { url, agent } = await started([{ call: [{ tool: "wait" }] }, { say: "Done without you." }], {
      ...waitingFor(gate.promise),
    });
    const sending = say(agent, "go", { forwardedProps: { on_disconnect: "continue" } });
    await until(() => callsOf(agent).length > 0);
    agent.abortRun();
    await sending;
    gate.resolve();
    await until(async () => (await runsOf(url))[0]?.status === "success");
    expect(texts(await reopened(Client, url)).at(-1)).toBe("assistant: Done without you.");
  });

  test("that is opened in mid-answer shows the whole answer once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, agent } = await started([
      { say: "First.", call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      { say: words, delay_ms: 20 },
    ]);
    const sending = say(agent, "go");
    await until(() => texts(agent).some((text) => text.includes("word3")));
    const again = await reopened(Client, url);
    await sending;
    expect(texts(again).at(-1)).toBe(`assistant: ${words}`);
    expect(essence(again)).toEqual(essence(agent));
    expect(again.state).toEqual(agent.state);
  });

  test("gets another answer in place of the first", async () => {
    const { url, agent } = await started([{ say: "One." }, { say: "Two." }]);
    await say(agent, "count");
    agent.setMessages(agent.messages.slice(0, 1));
    await agent.runAgent();
    expect(texts(agent)).toEqual(["user: count", "assistant: Two."]);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test("edits what was said: what followed is forgotten on both sides", async () => {
    const { url, agent } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await say(agent, "first");
    await say(agent, "second");
    const [first, ...rest] = agent.messages;
    agent.setMessages([{ id: first?.id ?? "", role: "user", content: "other" }]);
    await agent.runAgent();
    expect(texts(agent)).toEqual(["user: other", "assistant: C."]);
    expect(rest).toHaveLength(3);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test("replaces a message that it has dropped from its list", async () => {
    const { url, agent } = await started([{ say: "A." }, { say: "B." }, { say: "C." }]);
    await say(agent, "first");
    await say(agent, "second");
    agent.setMessages(agent.messages.slice(0, 2));
    await say(agent, "instead");
    expect(texts(agent)).toEqual(["user: first", "assistant: A.", "user: instead", "assistant: C."]);
    expect(texts(await reopened(Client, url))).toEqual(texts(agent));
  });

  test("is in error with the provider's words", async () => {
    const { agent } = await started([
      { say: "Half of", fail: { code: "model_rejected", message: "The provider said no." } },
    ]);
    let failure = "";
    await say(agent, "go", undefined, {
      onRunErrorEvent: ({ event }) => {
        failure = `${event.code}: ${event.message}`;
      },
    });
    expect(failure).toMatch(/^model_rejected: .*The provider said no\./);
    expect(texts(agent)).toEqual(["user: go"]);
  });

  test("takes back what a failed attempt said", async () => {
    const { agent } = await started([
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "The whole." },
    ]);
    await say(agent, "go");
    expect(texts(agent)).toEqual(["user: go", "assistant: The whole."]);
  });

  test.each(["memory", "sqlite"])(
    "is in error when a server with %s shuts down in mid-answer: half an answer is not the answer",
    async (store) => {
      const { agent, app } = await started([{ say: "a ".repeat(500), delay_ms: 20 }], { config: { store } });
      const codes: unknown[] = [];
      const sending = say(agent, "go", undefined, {
        onRunErrorEvent: ({ event }) => void codes.push(event.code),
      });
      await until(() => texts(agent).length > 1);
      await app.close();
      await sending;
      expect(codes).toEqual(["shutting_down"]);
    },
  );

  test("answers two approvals one after the other", async () => {
    const { url, agent } = await started([
      {
        call: [
          { tool: "execute", args: { command: "echo one" } },
          { tool: "execute", args: { command: "echo two" } },
        ],
      },
      { say: "Both." },
    ]);
    await say(agent, "run them");
    const [first, second] = agent.pendingInterrupts;
    const answer = (id: string | undefined) =>
      fetch(`${url}/ag-ui/agent/assistant/run`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          ...{ threadId: "t1", runId: "r2" },
          resume: [{ interruptId: id, status: "resolved", payload: true }],
        }),
      });
    await (await answer(first?.id)).text();
    const again = await reopened(Client, url);
    expect(again.pendingInterrupts.map(({ id }) => id)).toEqual([second?.id]);
    await again.runAgent(answering(again, true));
    expect(texts(again).filter((text) => text.startsWith("tool"))).toHaveLength(2);
    expect(texts(again).at(-1)).toBe("assistant: Both.");
    expect((await answer(first?.id)).status).toBe(409);
  });

  test("that is opened while an approved call's run speaks shows each result once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, agent } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: words, delay_ms: 20 },
    ]);
    await say(agent, "run it");
    const resuming = agent.runAgent(answering(agent, { approved: true }));
    await until(() => texts(agent).some((text) => text.includes("word3")));
    const again = await reopened(Client, url);
    await resuming;
    expect(essence(again)).toEqual(essence(agent));
    expect(texts(again)).toHaveLength(4);
  });

  test("sends images, and the model sees them; URLs are refused", async () => {
    let seen: unknown;
    const { agent } = await started(({ messages }) => {
      seen = messages.at(-1)?.content;
      return { say: "A dot." };
    });
    const value = Buffer.from("not really an image").toString("base64");
    const image = (
      source:
        | { type: "data"; value: string; mimeType: string }
        | { type: "url"; value: string; mimeType: string },
    ) => ({
      ...{ id: crypto.randomUUID(), role: "user" as const },
      content: [
        { type: "text" as const, text: "What is it?" },
        { type: "image" as const, source },
      ],
    });
    agent.addMessage(image({ type: "data", value, mimeType: "image/png" }));
    await agent.runAgent();
    expect(seen).toEqual([
      { type: "text", text: "What is it?" },
      { type: "image", media_type: "image/png", data: value },
    ]);
    expect(texts(agent).at(-1)).toBe("assistant: A dot.");
    agent.addMessage(image({ type: "url", value: "https://example.com/a.png", mimeType: "image/png" }));
    await expect(agent.runAgent()).rejects.toMatchObject({
      status: 400,
      payload: { error: "invalid_request", message: expect.stringContaining("the server fetches nothing") },
    });
  });

  test("knows a subagent as one, and keeps its words apart", async () => {
    const { url } = await started(HELPED.script, { agents: HELPED.agents });
    const agent = newAgent(Client, url);
    await say(agent, "ask the helper");
    const own = agent.messages.filter(
      (message) => !("subagentRunId" in message) && message.role !== "activity",
    );
    expect(own.map(({ role, content }) => (role === "tool" ? role : `${role}: ${content ?? ""}`))).toEqual([
      "user: ask the helper",
      "assistant: ",
      "tool",
      "assistant: Red, says the helper.",
    ]);
    const others = agent.messages.filter((message) => !own.includes(message));
    expect(JSON.stringify(others)).toContain("Looking.");
    if (version === "0.0.59")
      expect(others).toMatchObject([
        { role: "activity", content: { agent: "helper", status: "completed", text: "Looking." } },
      ]);
    else
      expect(others.slice(0, 1)).toMatchObject([
        { role: "assistant", content: "Looking.", subagentRunId: expect.any(String) },
      ]);
  });

  test("shows what the user says to the running agent", async () => {
    const gate = Promise.withResolvers<void>();
    const { url, agent } = await started(
      [{ say: "Looking.", call: [{ tool: "wait" }] }, { say: "As you say." }],
      {
        ...waitingFor(gate.promise),
      },
    );
    const sending = say(agent, "go");
    await until(() => callsOf(agent).length > 0);
    const [run] = await runsOf(url);
    const steered = await fetch(`${url}/threads/t1/runs/${run?.id}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ input: "Be quick." }),
    });
    expect(steered.status).toBe(202);
    gate.resolve();
    await sending;
    expect(texts(agent)).toEqual([
      "user: go",
      "assistant: Looking.",
      "tool: seen",
      "user: Be quick.",
      "assistant: As you say.",
    ]);
  });

  test("tells a new thread its context and instructions once", async () => {
    const seen: string[] = [];
    const { agent } = await started(({ messages }) => {
      seen.push(messages.map(({ role, content }) => `${role}: ${String(content)}`).join("|"));
      return { say: "Yes." };
    });
    agent.setMessages([{ id: "s1", role: "system", content: "Be brief." }]);
    const context = [{ description: "The page", value: "Prices" }];
    await say(agent, "hello", { context });
    await say(agent, "again", { context });
    expect(seen).toEqual([
      "system: Be brief.|system: The page:\nPrices|user: hello",
      "system: Be brief.|system: The page:\nPrices|user: hello|assistant: Yes.|user: again",
    ]);
  });

  test("of two users with one thread id reach a thread each", async () => {
    const { url } = await startServer({
      script: () => ({ say: "For {{user}}." }),
      agents: AGENTS,
      config: {
        auth: { scheme: "header", trusted_proxies: ["127.0.0.1"] },
        backends: { allow_local: true },
      },
    });
    const as = (user: string, route: PageOptions["route"] = "run") =>
      newAgent(Client, url, { route: route ?? "run", headers: headersOf({ tenant: "acme", user }) });
    const [ada, bob] = [as("ada"), as("bob")];
    await say(ada, "ada's word");
    const page = as("bob", "connect");
    await page.runAgent();
    expect(page.messages).toEqual([]);
    const stopped = await fetch(`${url}/ag-ui/agent/assistant/stop/t1`, {
      method: "POST",
      headers: headersOf({ tenant: "acme", user: "bob" }),
    });
    expect(await stopped.json()).toEqual({ stopped: false });
    await say(bob, "bob's word");
    await say(ada, "more of ada's");
    const again = as("bob", "connect");
    await again.runAgent();
    expect(texts(again)).toEqual(["user: bob's word", "assistant: For bob's word."]);
    expect(texts(ada)).toHaveLength(4);
  });
});

describe("the AG-UI routes", () => {
  const post = (url: string, body: unknown, path = "agent/assistant/run") =>
    fetch(`${url}/ag-ui/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const user = (content: unknown) => [{ id: "m1", role: "user", content }];

  test("refuse with `error` and `message`", async () => {
    const { url } = await startServer({ script: [{ say: "ok" }], agents: AGENTS });
    const base = { threadId: "t1", runId: "r1" };
    const open = await post(url, { ...base, messages: user("hi") });
    await open.text();
    const refusals = [
      [404, "not_found", await post(url, { ...base, messages: user("hi") }, "agent/unknown/run")],
      [400, "invalid_request", await post(url, { ...base, messages: [] })],
      [400, "invalid_request", await post(url, { threadId: "t1", messages: user("hi") })],
      [400, "invalid_request", await post(url, { ...base, messages: user({ text: "hi" }) })],
      [
        400,
        "invalid_request",
        await post(url, { ...base, messages: user("x"), forwardedProps: { on_disconnect: 1 } }),
      ],
      [400, "invalid_request", await post(url, { ...base, messages: user("x"), tools: [{ name: "a b" }] })],
      [
        400,
        "invalid_request",
        await post(url, {
          ...base,
          messages: [...user("hi"), { id: "a", role: "assistant", content: "ok" }],
        }),
      ],
      [
        409,
        "interrupt_closed",
        await post(url, {
          ...base,
          messages: [],
          resume: [{ interruptId: "i1", status: "resolved", payload: true }],
        }),
      ],
      [
        409,
        "interrupt_closed",
        await post(url, {
          ...base,
          messages: [...user("hi"), { role: "tool", toolCallId: "c", content: "x" }],
        }),
      ],
    ] as const;
    for (const [status, error, response] of refusals) {
      const body = (await response.json()) as { message: string };
      expect([response.status, body]).toEqual([status, { error, message: expect.any(String) }]);
      expect(body.message).not.toContain("undefined");
    }
  });

  test("take a message that is sent again during its run for the same one", async () => {
    let asked = 0;
    const { url } = await startServer({
      script: () => {
        asked++;
        return { say: "a b c d e f", delay_ms: 20 };
      },
    });
    const body = { threadId: "t1", runId: "r1", messages: user("hi") };
    const responses = await Promise.all([post(url, body), post(url, body)]);
    const [first, second] = await Promise.all(responses.map((each) => each.text()));
    expect(second).toBe(first);
    expect(asked).toBe(1);
  });

  test("stop what is at work, and say so", async () => {
    const { url } = await startServer({ script: [{ say: "a ".repeat(500), delay_ms: 20 }], agents: AGENTS });
    const stop = async (thread: string) =>
      (await post(url, undefined, `agent/assistant/stop/${thread}`)).json();
    expect(await stop("t1")).toEqual({ stopped: false });
    const running = await post(url, { threadId: "t1", runId: "r1", messages: user("hi") });
    expect(await stop("t1")).toEqual({ stopped: true });
    const events = await running.text();
    expect(events).toContain("RUN_FINISHED");
    expect(events).not.toContain('"cancelled"');
    expect((await runsOf(url))[0]?.status).toBe("cancelled");
  });

  test("answer an approval that is cancelled with no", async () => {
    const { url } = await startServer({
      script: [{ call: [{ tool: "execute", args: { command: "echo hi" } }] }, { say: "As you like." }],
      agents: AGENTS,
    });
    await (await post(url, { threadId: "t1", runId: "r1", messages: user("hi") })).text();
    const resume = [{ interruptId: "approval_call_1_1", status: "cancelled" }];
    const body = await (await post(url, { threadId: "t1", runId: "r2", messages: [], resume })).text();
    expect(body).toContain("TOOL_CALL_RESULT");
    expect(body).toContain("As you like.".split(" ")[0]);
  });
});

/** An agent with a tool that returns when `gate` does. */
function waitingFor(gate: Promise<void>): ServerOptions {
  const wait = defineTool({
    name: "wait",
    description: "Waits.",
    parameters: z.object({}),
    annotations: { requiresPermission: false },
    execute: async () => {
      await gate;
      return "seen";
    },
  });
  return {
    tools: [wait],
    agents: "agents: { assistant: { model: 'scripted:test', tools: [wait], backend: { type: local } } }",
  };
}
