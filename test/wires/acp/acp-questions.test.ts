// What an editor asks its user, over the Agent Client Protocol.

import { type CreateElicitationRequest, methods } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Script } from "../../../src/agent/models/scripted.ts";
import { saidIn as messagesIn, statusesOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { cast, completing, delegating } from "../../support/team.ts";
import { calls, editor, of, opened, saidIn } from "./editor.ts";

describe("an editor", () => {
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

  test("asks for a subagent's call under an entry of its own", async () => {
    const { url } = await startServer({
      agents: `
defaults: { model: "scripted:test", backend: { type: local } }
agents:
  lead: { system_prompt: I am lead, subagents: [coder] }
  coder: { system_prompt: I am coder, tools: [execute], permissions: { rules: [{ ask: execute, message: May it? }] } }
`,
      script: cast({
        lead: [delegating({ agent: "coder", task: "Run it" }), { say: "Done." }],
        coder: [{ call: [{ tool: "execute", args: { command: "echo one" } }] }, completing("Ran.")],
      }),
    });
    const { open, say, asked, updates } = await editor(url, { selects: ["allow_once"] });
    await say(await open(), "go");
    const [{ toolCall } = { toolCall: undefined }] = asked;
    expect(toolCall).toMatchObject({ title: expect.stringMatching(/ asks: May it\?$/) });
    const own = of(updates, "tool_call_update").filter(
      ({ toolCallId }) => toolCallId === toolCall?.toolCallId,
    );
    expect(own).toMatchObject([{ status: "completed" }]);
    expect(saidIn(updates)).toBe("Done.");
  });

  test("approves nothing with the text of its next prompt", async () => {
    const run = { call: [{ tool: "execute", args: { command: "echo one" } }] };
    const { url, say, asked, child, sessionId } = await opened([run, { say: "As you like." }]);
    say(sessionId, "go").catch(() => {});
    await expect.poll(() => asked.length).toBe(1);
    child.kill("SIGKILL");
    const next = await editor(url);
    await next.agent.request(methods.agent.session.load, { sessionId, cwd: "/project", mcpServers: [] });
    expect(await next.say(sessionId, "yes")).toEqual({ stopReason: "end_turn" });
    expect(await messagesIn(url, sessionId)).toEqual(["go", "", "yes", "As you like."]);
  });

  test("stops the turn instead of answering: the call is not executed, and the session continues", async () => {
    const { url, say, updates, sessionId } = await opened(
      [{ call: [{ tool: "execute", args: { command: "echo hi" } }] }, { say: "Hello again." }],
      { selects: ["stop"] },
    );
    expect(await say(sessionId, "go")).toEqual({ stopReason: "cancelled" });
    expect(calls(updates)).toMatchObject([{ status: "failed" }]);
    expect(await statusesOf(url, sessionId)).toEqual(["cancelled", "interrupted"]);
    expect(await say(sessionId, "again")).toEqual({ stopReason: "end_turn" });
    expect(saidIn(updates)).toBe("Hello again.");
  });

  test("cancels during a question, and the question is withdrawn", async () => {
    const { url, agent, say, asked, sessionId } = await opened([
      { call: [{ tool: "execute", args: { command: "echo hi" } }] },
    ]);
    const prompt = say(sessionId, "go");
    await expect.poll(() => asked.length).toBe(1);
    await agent.notify(methods.agent.session.cancel, { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(await statusesOf(url, sessionId)).toEqual(["cancelled", "interrupted"]);
  });

  test("shows a question as a form, if it supports forms", async () => {
    const ask = (args: object) => ({ call: [{ tool: "ask_user", args: { question: "Which?", ...args } }] });
    const messages: unknown[] = [];
    const filled = [{ answer: "Vienna" }, { answer: ["red", "blue"] }];
    const requests: CreateElicitationRequest[] = [];
    const { say, updates, sessionId } = await opened(
      ({ messages: now }, call) => {
        messages.push(now.at(-1)?.content);
        return [ask({}), ask({ kind: "multi_select", options: ["red", "blue"] }), { say: "Thanks." }][call];
      },
      {
        capabilities: { elicitation: { form: {} } },
        fills(request) {
          requests.push(request);
          return { action: "accept", content: filled.shift() ?? {} };
        },
      },
    );
    expect(await say(sessionId, "go")).toEqual({ stopReason: "end_turn" });
    expect(messages).toEqual(["go", "Vienna", "red, blue"]);
    const shown = of(updates, "tool_call").map(({ toolCallId }) => toolCallId);
    expect(requests.map((request) => "toolCallId" in request && request.toolCallId)).toEqual(shown);
  });

  test("without forms, offers options to select, and shows any other question as text, which the next prompt answers", async () => {
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
});
