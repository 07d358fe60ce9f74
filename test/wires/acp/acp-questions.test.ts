// What an editor asks its user, over the Agent Client Protocol.

import { methods } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import type { Script } from "../../../src/agent/models/scripted.ts";
import { statusesOf } from "../../support/native.ts";
import { calls, opened, saidIn } from "./editor.ts";

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
