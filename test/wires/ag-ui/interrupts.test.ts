// Approvals, questions and the page's own tools in AG-UI's own client, against the whole server.

import { describe, expect, test } from "vitest";
import { postJson, runsOf } from "../../support/native.ts";
import { until } from "../../support/until.ts";
import { answering, callsOf, essence, reopened, say, started, texts, VERSIONS } from "./http-agent.ts";

describe.each(VERSIONS)("HttpAgent %s", (_version, Client) => {
  test("approves a call, which then runs", async () => {
    const { agent } = await started(Client, [
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

  test("denies a call with a reason, which the model receives", async () => {
    let read = "";
    const { agent } = await started(Client, ({ messages }, call) => {
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
    const { agent } = await started(Client, [
      { call: [{ tool: "execute", args: { command: "echo one" } }] },
      { say: "Done." },
    ]);
    await say(agent, "run it");
    await agent.runAgent(answering(agent, { approved: true, editedArgs: { command: "echo two" } }));
    expect(texts(agent)).toContainEqual(expect.stringMatching(/^tool: .*two/s));
  });

  test("answers a question, even after a reload", async () => {
    const { url, agent } = await started(Client, [
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

  test("executes its own tool, and the model receives the result", async () => {
    let read = "";
    const tools = [{ name: "where", description: "Where the user is.", parameters: { type: "object" } }];
    const { url, agent } = await started(Client, ({ messages }, call) => {
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
    expect(await runsOf(url, "t1")).toHaveLength(2);
    expect(essence(await reopened(Client, url))).toEqual(essence(agent));
  });

  test("answers two approvals one after another", async () => {
    const { url, agent } = await started(Client, [
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
      postJson(`${url}/ag-ui/agent/assistant/run`, {
        threadId: "t1",
        runId: "r2",
        resume: [{ interruptId: id, status: "resolved", payload: true }],
      });
    await (await answer(first?.id)).text();
    const again = await reopened(Client, url);
    expect(again.pendingInterrupts.map(({ id }) => id)).toEqual([second?.id]);
    await again.runAgent(answering(again, true));
    expect(texts(again).filter((text) => text.startsWith("tool"))).toHaveLength(2);
    expect(texts(again).at(-1)).toBe("assistant: Both.");
    expect((await answer(first?.id)).status).toBe(409);
  });

  test("that is opened during the run of an approved call shows each result once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, agent } = await started(Client, [
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
});
