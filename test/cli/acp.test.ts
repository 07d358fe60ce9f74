// The stock client of the Agent Client Protocol with the real process, against a real server.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  type McpServer,
  methods,
  ndJsonStream,
  type PromptRequest,
  type RequestPermissionRequest,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Script, Turn } from "../../src/models/scripted.ts";
import { accept, callbackTool, freePort, send } from "../support/callback-tool.ts";
import { NODE_ENV } from "../support/node.ts";
import { MAIN } from "../support/program.ts";
import { startServer } from "../support/server.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    context_window: 50000
    backend: { type: local }
    tools: [ask_user, write_todos, write_file, read_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
`;

interface EditorOptions {
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  readonly capabilities?: ClientCapabilities;
  /** What the user selects, request by request: an option's kind or name; `stop` to stop the turn. */
  readonly selects?: readonly string[];
  readonly fills?: (request: CreateElicitationRequest) => CreateElicitationResponse;
}

/** An editor that has started `skein acp` for its user. */
async function editor(url: string, options: EditorOptions = {}) {
  const { args = [], env = {}, capabilities = {}, selects = [], fills } = options;
  const child = spawn(process.execPath, [MAIN, "acp", "--url", url, ...args], {
    env: { ...NODE_ENV, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const output: string[] = [];
  child.stdout.on("data", (chunk) => output.push(String(chunk)));
  let log = "";
  child.stderr.on("data", (chunk) => (log += String(chunk)));
  const updates: SessionUpdate[] = [];
  const asked: RequestPermissionRequest[] = [];
  const app = client({ name: "editor" })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      const wanted = selects[asked.push(params) - 1];
      const option = params.options.find(({ kind, name }) => kind === wanted || name === wanted);
      if (wanted === undefined) return new Promise(() => {});
      return {
        outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" },
      };
    })
    .onRequest(methods.client.elicitation.create, ({ params }) => fills?.(params) ?? { action: "decline" });
  const input = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  const { agent } = app.connect(ndJsonStream(Writable.toWeb(child.stdin), input));
  const initialized = await agent.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: capabilities,
  });
  return {
    agent,
    child,
    initialized,
    updates,
    asked,
    log: () => log,
    output: () => output.join(""),
    ended: once(child, "exit"),
    open: async () =>
      (await agent.request(methods.agent.session.new, { cwd: "/project", mcpServers: [] })).sessionId,
    say: (sessionId: string, ...prompt: (string | PromptRequest["prompt"][number])[]) =>
      agent.request(methods.agent.session.prompt, {
        sessionId,
        prompt: prompt.map((block) => (typeof block === "string" ? { type: "text", text: block } : block)),
      }),
  };
}

async function opened(script: readonly Turn[] | Script, options: EditorOptions = {}) {
  const { url } = await startServer({ script, agents: AGENTS });
  const its = await editor(url, options);
  return { url, ...its, sessionId: await its.open() };
}

type Kind = SessionUpdate["sessionUpdate"];
const textIn = (updates: readonly SessionUpdate[], kind: Kind) =>
  updates
    .flatMap((each) =>
      each.sessionUpdate === kind && "content" in each && each.content && "text" in each.content
        ? [each.content.text]
        : [],
    )
    .join("");
const saidIn = (updates: readonly SessionUpdate[]) => textIn(updates, "agent_message_chunk");
const of = <K extends Kind>(updates: readonly SessionUpdate[], kind: K) =>
  updates.filter((each): each is Extract<SessionUpdate, { sessionUpdate: K }> => each.sessionUpdate === kind);

/** The tool calls as an editor has them on its screen. */
function calls(updates: readonly SessionUpdate[]) {
  const shown = new Map<string, Record<string, unknown>>();
  for (const update of updates) {
    if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") continue;
    const { sessionUpdate: _, toolCallId, ...rest } = update;
    shown.set(toolCallId, { ...shown.get(toolCallId), ...rest });
  }
  return [...shown.values()];
}

const runsOf = async (url: string, thread: string) =>
  (
    (await (await fetch(`${url}/threads/${thread}/runs`)).json()) as { items: { status: string }[] }
  ).items.map(({ status }) => status);

describe("an editor", () => {
  test("shows what the agent thinks and says as it comes, and how much of its context is used", async () => {
    const { say, updates, sessionId } = await opened([
      {
        think: "Let me see.",
        say: "You said {{user}} to me.",
        usage: { input_tokens: 90, output_tokens: 10 },
      },
    ]);
    expect(await say(sessionId, "hello")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toBe("You said hello to me.");
    expect(of(updates, "agent_message_chunk").length).toBeGreaterThan(3);
    expect(textIn(updates, "agent_thought_chunk")).toBe("Let me see.");
    expect(of(updates, "usage_update")).toEqual([{ sessionUpdate: "usage_update", used: 100, size: 50_000 }]);
    expect(of(updates, "session_info_update")).toMatchObject([{ title: "hello" }]);
  });

  test("shows tools with their changes and results, and todos as a plan", async () => {
    const todos = [
      { id: "1", title: "Write it", status: "done" },
      { id: "2", title: "Read it", status: "in_progress" },
    ];
    const { say, updates, sessionId } = await opened([
      { call: [{ tool: "write_todos", args: { todos } }] },
      { call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      {
        call: [
          { tool: "read_file", args: { path: "a.txt" } },
          { tool: "read_file", args: { path: "no.txt" } },
        ],
      },
      { say: "Done." },
    ]);
    await say(sessionId, "work");
    expect(calls(updates)).toMatchObject([
      { title: "write_todos", kind: "think", status: "completed" },
      {
        ...{ title: "write_file a.txt", kind: "edit", status: "completed" },
        rawInput: { path: "a.txt", content: "x" },
        content: [{ type: "diff", path: "a.txt", newText: "x" }],
      },
      {
        ...{ title: "read_file a.txt", kind: "read", status: "completed" },
        content: [{ type: "content", content: { type: "text", text: expect.stringContaining("x") } }],
      },
      { title: "read_file no.txt", status: "failed" },
    ]);
    expect(of(updates, "plan").at(-1)?.entries).toEqual([
      { content: "Write it", priority: "medium", status: "completed" },
      { content: "Read it", priority: "medium", status: "in_progress" },
    ]);
  });

  test("asks for permission: once, always in the session, or not", async () => {
    const run = (command: string) => ({ call: [{ tool: "execute", args: { command } }] });
    const { say, updates, asked, sessionId } = await opened(
      [run("echo one"), run("echo two"), run("echo two"), run("echo three"), { say: "Done." }],
      { selects: ["allow_once", "allow_always", "reject_once"] },
    );
    expect(await say(sessionId, "go")).toEqual({ stopReason: "end_turn" });
    expect(asked.map(({ toolCall, options }) => [toolCall.title, toolCall.rawInput, options.length])).toEqual(
      [
        ["May it?", { command: "echo one" }, 3],
        ["May it?", { command: "echo two" }, 3],
        ["May it?", { command: "echo three" }, 3],
      ],
    );
    expect(calls(updates).map(({ kind, status }) => [kind, status])).toEqual([
      ["execute", "completed"],
      ["execute", "completed"],
      ["execute", "completed"],
      ["execute", "failed"],
    ]);
    expect(saidIn(updates)).toBe("Done.");
  });

  test("stops the turn instead of an answer: the call is not carried out, and the session continues", async () => {
    const { url, say, updates, sessionId } = await opened(
      [{ call: [{ tool: "execute", args: { command: "echo hi" } }] }, { say: "Hello again." }],
      { selects: ["stop"] },
    );
    expect(await say(sessionId, "go")).toEqual({ stopReason: "cancelled" });
    expect(calls(updates)).toMatchObject([{ status: "failed" }]);
    expect(await runsOf(url, sessionId)).toEqual(["cancelled", "interrupted"]);
    expect(await say(sessionId, "again")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toBe("Hello again.");
  });

  test("cancels a turn: the run ends, the prompt is answered, and the session continues", async () => {
    const { url, agent, say, updates, sessionId } = await opened((_, call) =>
      call === 0 ? { say: "word ".repeat(1000), delay_ms: 20 } : { say: "Next." },
    );
    const prompt = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word word");
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(await runsOf(url, sessionId)).toEqual(["cancelled"]);
    expect(await say(sessionId, "again")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toMatch(/Next\.$/);
  });

  test("cancels while it asks: the question is withdrawn", async () => {
    const { url, agent, say, asked, sessionId } = await opened([
      { call: [{ tool: "execute", args: { command: "echo hi" } }] },
    ]);
    const prompt = say(sessionId, "go");
    await expect.poll(() => asked.length).toBe(1);
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(await runsOf(url, sessionId)).toEqual(["cancelled", "interrupted"]);
  });

  test("cancels a prompt that waits for a place at the server", async () => {
    const script: Script = ({ messages }) =>
      messages.some(({ content }) => content === "long")
        ? { say: "word ".repeat(1000), delay_ms: 20 }
        : undefined;
    const { url } = await startServer({ script, agents: AGENTS, config: { limits: { runs: 1 } } });
    const { agent, open, say, updates } = await editor(url);
    const [one, other] = [await open(), await open()];
    const long = say(one, "long");
    await expect.poll(() => saidIn(updates)).toContain("word");
    const waiting = say(other, "short");
    await expect.poll(() => runsOf(url, other).catch(() => [])).toEqual(["pending"]);
    await agent.notify(methods.agent.session.cancel, { sessionId: other });
    expect(await waiting).toEqual({ stopReason: "cancelled" });
    expect(await runsOf(url, other)).toEqual(["cancelled"]);
    await agent.notify(methods.agent.session.cancel, { sessionId: one });
    await long;
  });

  test("cancels a prompt although the server has gone", async () => {
    const script = [{ say: "word ".repeat(1000), delay_ms: 20 }];
    const { url, app } = await startServer({ script, agents: AGENTS, config: { store: "sqlite" } });
    const { agent, open, say, updates } = await editor(url);
    const sessionId = await open();
    const prompt = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word");
    await app.close();
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
  });

  test("shows a question as a form, if it has forms", async () => {
    const ask = (args: object) => ({ call: [{ tool: "ask_user", args: { question: "Which?", ...args } }] });
    const messages: unknown[] = [];
    const filled = [{ answer: "Vienna" }, { answer: ["red", "blue"] }];
    const { say, sessionId } = await opened(
      ({ messages: now }, call) => {
        messages.push(now.at(-1)?.content);
        return [ask({}), ask({ kind: "multi_select", options: ["red", "blue"] }), { say: "Thanks." }][call];
      },
      {
        capabilities: { elicitation: { form: {} } },
        fills: () => ({ action: "accept", content: filled.shift() ?? {} }),
      },
    );
    expect(await say(sessionId, "go")).toEqual({ stopReason: "end_turn" });
    expect(messages).toEqual(["go", "Vienna", "red, blue"]);
  });

  test("without forms offers options to select, and says any other question as text, which the next prompt answers", async () => {
    const messages: unknown[] = [];
    const script: Script = ({ messages: now }, call) => {
      messages.push(now.at(-1)?.content);
      return [
        {
          call: [
            { tool: "ask_user", args: { question: "Which?", kind: "select", options: ["red", "blue"] } },
          ],
        },
        { call: [{ tool: "ask_user", args: { question: "Where to?" } }] },
        { say: "Good." },
      ][call];
    };
    const { say, updates, sessionId } = await opened(script, { selects: ["blue"] });
    expect(await say(sessionId, "go")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toBe("Where to?");
    expect(await say(sessionId, "Vienna")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toBe("Where to?Good.");
    expect(messages).toEqual(["go", "blue", "Vienna"]);
  });

  test("finds its sessions after a restart, of its folder, and shows the same as before", async () => {
    const { url, say, updates, sessionId, child } = await opened([
      {
        ...{ think: "Hm.", say: "I write." },
        call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }],
      },
      { say: "Written." },
      { say: "You said {{user}}." },
    ]);
    await say(sessionId, "write it");
    child.stdin.end();
    const next = await editor(url);
    const here = { cwd: "/project", mcpServers: [] };
    const listed = async (cwd: string) =>
      (await next.agent.request(methods.agent.session.list, { cwd })).sessions.map(({ title }) => title);
    expect(await listed("/project")).toEqual(["write it"]);
    expect(await listed("/other")).toEqual([]);
    await next.agent.request(methods.agent.session.load, { sessionId, ...here });
    expect(textIn(next.updates, "user_message_chunk")).toBe("write it");
    expect(saidIn(next.updates)).toBe("I write.Written.");
    expect(textIn(next.updates, "agent_thought_chunk")).toBe("Hm.");
    expect(calls(next.updates)).toEqual(calls(updates));
    const ids = (all: readonly SessionUpdate[]) =>
      new Set(of(all, "agent_message_chunk").map(({ messageId }) => messageId));
    expect(ids(next.updates)).toEqual(ids(updates));
    await next.say(sessionId, "more");
    expect(saidIn(next.updates)).toMatch(/You said more\.$/);
  });

  test("sends images and files that the user mentions, and the agent reads them", async () => {
    let read: unknown;
    const { say, sessionId } = await opened(({ messages }) => {
      read = messages.at(-1)?.content;
      return { say: "Seen." };
    });
    const data = Buffer.from("not really an image").toString("base64");
    await say(
      sessionId,
      "Look at ",
      { type: "resource_link", name: "a.txt", uri: "file:///project/a.txt" },
      { type: "resource", resource: { uri: "file:///project/b.txt", text: "inside" } },
      { type: "image", mimeType: "image/png", data },
    );
    expect(read).toEqual([
      {
        type: "text",
        text: 'Look at [a.txt](file:///project/a.txt)\n<resource uri="file:///project/b.txt">\ninside\n</resource>\n',
      },
      { type: "image", media_type: "image/png", data },
    ]);
  });

  test("reads the provider's error, and learns when a limit ends the turn", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { say, sessionId } = await opened([
      { say: "Half", fail },
      { say: "cut", stop_reason: "max_tokens" },
    ]);
    await expect(say(sessionId, "go")).rejects.toThrow("The provider said no.");
    expect(await say(sessionId, "again")).toEqual({ stopReason: "max_tokens" });
  });

  test("sees a turn through whose tool delivers its result later", async () => {
    const tool = await callbackTool(accept);
    const port = await freePort();
    const config = {
      ...{ listen: { port }, public_url: `http://127.0.0.1:${port}`, http_tools: { allow: tool.allow } },
    };
    const { url } = await startServer({
      script: [{ call: [{ tool: "freight" }] }, { say: "It is 42." }],
      agents: `agents: { assistant: { model: "scripted:test", tools: [freight] } }`,
      config,
    });
    expect((await tool.register(url, "freight")).status).toBe(201);
    const its = await editor(url);
    const sessionId = await its.open();
    const prompt = its.say(sessionId, "go");
    await expect.poll(() => runsOf(url, sessionId)).toEqual(["interrupted"]);
    await send(tool.calls[0]?.result_url ?? "", { result: 42 });
    expect(await prompt).toEqual({ stopReason: "end_turn" });
    expect(saidIn(its.updates)).toBe("It is 42.");
    expect(calls(its.updates)).toMatchObject([{ title: "freight", status: "completed" }]);
  });

  test("is refused in words: audio, an empty prompt, another prompt meanwhile, an unknown session", async () => {
    const { say, agent, updates, sessionId } = await opened([{ say: "word ".repeat(1000), delay_ms: 20 }]);
    await expect(say(sessionId, { type: "audio", mimeType: "audio/wav", data: "AA==" })).rejects.toThrow(
      "Audio",
    );
    await expect(say(sessionId, "")).rejects.toThrow("The prompt is empty");
    const here = { cwd: "/", mcpServers: [] };
    const unknown = { code: -32002, data: { sessionId: "unknown" } };
    await expect(say("unknown", "hi")).rejects.toMatchObject(unknown);
    await expect(
      agent.request(methods.agent.session.load, { sessionId: "unknown", ...here }),
    ).rejects.toMatchObject(unknown);
    const first = say(sessionId, "go");
    await expect.poll(() => saidIn(updates)).toContain("word");
    await expect(say(sessionId, "and this")).rejects.toThrow("in progress");
    await agent.notify(methods.agent.session.cancel, { sessionId });
    await first;
  });

  test("learns that its own MCP servers are not used", async () => {
    const { url } = await startServer({ script: [{ say: "ok" }], agents: AGENTS });
    const { agent, say, updates, log } = await editor(url, { capabilities: { session: { notices: {} } } });
    const server: McpServer = { name: "files", command: "files", args: [], env: [] };
    const { sessionId } = await agent.request(methods.agent.session.new, { cwd: "/", mcpServers: [server] });
    await say(sessionId, "go");
    expect(of(updates, "notice")).toMatchObject([{ title: expect.stringContaining("files") }]);
    expect(log()).toContain("MCP servers of the editor are not used (files)");
  });

  test("reads why it cannot begin: no server, no key, no such agent", async () => {
    const { url } = await startServer({ agents: AGENTS, config: { auth: { scheme: "api_key" } } });
    const failed = async (its: Awaited<ReturnType<typeof editor>>) =>
      its.open().catch((error: unknown) => error);
    expect(await failed(await editor(url))).toMatchObject({
      code: -32000,
      message: expect.stringContaining("Set SKEIN_API_KEY"),
    });
    expect(await failed(await editor("http://127.0.0.1:1"))).toMatchObject({
      message: expect.stringContaining("http://127.0.0.1:1"),
    });
    const open = await startServer({ agents: AGENTS });
    expect(await failed(await editor(open.url, { args: ["--agent", "unknown"] }))).toMatchObject({
      message: expect.stringContaining("unknown"),
    });
  });
});

describe("the process", () => {
  test("writes frames alone to stdout, and ends when stdin does", async () => {
    const { say, child, sessionId, output, ended } = await opened([{ say: "Hello." }]);
    await say(sessionId, "go");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    const frames = output().trimEnd().split("\n");
    for (const frame of frames) expect(JSON.parse(frame)).toMatchObject({ jsonrpc: "2.0" });
  });

  test("ends when stdin does in the middle of a turn, which continues at the server", async () => {
    const { url, say, child, sessionId, updates, ended } = await opened([
      { say: "a b c d e f", delay_ms: 100 },
    ]);
    say(sessionId, "go").catch(() => {});
    await expect.poll(() => saidIn(updates)).toContain("a");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    await expect.poll(() => runsOf(url, sessionId)).toEqual(["success"]);
  });

  test("says what it is, and answers what it does not know with an error", async () => {
    const { url } = await startServer({ agents: AGENTS });
    const { initialized, agent } = await editor(url);
    expect(initialized).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "skein" },
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
    });
    const unknown: string = "session/unknown";
    await expect(agent.request(unknown, {})).rejects.toMatchObject({ code: -32601 });
  });
});
