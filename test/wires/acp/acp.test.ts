import { type McpServer, methods, type SessionUpdate } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { postJson, statusesOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { AGENTS, calls, editor, of, opened, saidIn, textIn } from "./editor.ts";

describe("an editor", () => {
  test("shows the agent's thoughts and text as they arrive, and how much of its context is used", async () => {
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

  test("finds its folder's sessions after a restart, and shows the same as before", async () => {
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
    // A thread of another front end has no folder.
    await postJson(`${url}/threads`, { title: "Elsewhere" });
    expect(await listed("/other")).toEqual(["Elsewhere"]);
    await Promise.all(Array.from({ length: 100 }, () => postJson(`${url}/threads`, {})));
    const { nextCursor } = await next.agent.request(methods.agent.session.list, {});
    const { sessions } = await next.agent.request(methods.agent.session.list, { cursor: nextCursor ?? "" });
    expect(sessions.map(({ title }) => title)).toEqual(["Elsewhere", "write it"]);
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

  test("learns that its own MCP servers are not used", async () => {
    const { url } = await startServer({ script: () => ({ say: "ok" }), agents: AGENTS });
    const { agent, say, updates, log } = await editor(url, { capabilities: { session: { notices: {} } } });
    const server: McpServer = { name: "files", command: "files", args: [], env: [] };
    const { sessionId } = await agent.request(methods.agent.session.new, { cwd: "/", mcpServers: [server] });
    for (const words of ["go", "on"]) await say(sessionId, words);
    expect(of(updates, "notice")).toMatchObject([{ title: expect.stringContaining("files") }]);
    await expect.poll(log).toContain("ignores the editor's MCP servers (files)");
    await agent.request(methods.agent.session.load, { sessionId, cwd: "/", mcpServers: [server] });
    await say(sessionId, "and on");
    expect(of(updates, "notice")).toHaveLength(2);
  });

  test("that selects an agent continues a thread of another one in that agent's context", async () => {
    const agents = `${AGENTS}  small: { model: "scripted:test", context_window: 1000 }\n`;
    const { url } = await startServer({ script: [{ say: "One." }, { say: "Two." }], agents });
    const first = await editor(url, { args: ["--agent", "assistant"] });
    const sessionId = await first.open();
    await first.say(sessionId, "one");
    const next = await editor(url, { args: ["--agent", "small"] });
    await next.agent.request(methods.agent.session.load, { sessionId, cwd: "/", mcpServers: [] });
    await next.say(sessionId, "two");
    expect(of(next.updates, "usage_update")).toMatchObject([{ size: 1000 }]);
  });
});

describe("the process", () => {
  test("writes only frames to stdout, and ends when stdin does", async () => {
    const { say, child, sessionId, output, ended } = await opened([{ say: "Hello." }]);
    await say(sessionId, "go");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    const frames = output().trimEnd().split("\n");
    for (const frame of frames) expect(JSON.parse(frame)).toMatchObject({ jsonrpc: "2.0" });
  });

  test("ends when stdin does during a turn, which continues on the server", async () => {
    const { url, say, child, sessionId, updates, ended } = await opened([
      { say: "a b c d e f", delay_ms: 100 },
    ]);
    say(sessionId, "go").catch(() => {});
    await expect.poll(() => saidIn(updates)).toContain("a");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    await expect.poll(() => statusesOf(url, sessionId)).toEqual(["success"]);
  });

  test("introduces itself, and answers unknown requests with an error", async () => {
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
