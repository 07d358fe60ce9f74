// CopilotKit's own core against the whole server, which is its runtime here.

import { CopilotKitCore, type FrontendTool } from "@copilotkit/core";
import { Window } from "happy-dom";
import { afterAll, describe, expect, test, vi } from "vitest";
import { z } from "zod/v3";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { runsOf } from "../../support/native.ts";
import { startServer } from "../../support/server.ts";
import { until } from "../../support/until.ts";

// It asks no runtime anything outside of a page.
vi.stubGlobal("window", new Window({ url: "http://localhost/" }));
afterAll(() => {
  vi.unstubAllGlobals();
});

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    description: Helps.
    backend: { type: local }
    tools: [ask_user, write_file, execute]
    permissions: { rules: [{ allow: write_file }, { ask: execute, message: May it? }] }
  other: { model: scripted:test, backend: { type: local } }
`;

interface PageOptions {
  readonly tools?: FrontendTool[];
  readonly headers?: Record<string, string>;
}

/** A page with CopilotKit on it, once it knows its agents. */
async function page(url: string, { tools = [], headers = {} }: PageOptions = {}) {
  const failures: string[] = [];
  const core = new CopilotKitCore({
    runtimeUrl: `${url}/ag-ui`,
    tools,
    headers,
    properties: { on_disconnect: "continue" },
  });
  core.subscribe({ onError: ({ error }) => void failures.push(error.message) });
  await until(() => core.getAgent("assistant") !== undefined);
  const agent = core.getAgent("assistant");
  if (!agent) throw new Error("There is no agent.");
  agent.threadId = "t1";
  const say = (content: string) => {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
    return core.runAgent({ agent });
  };
  return { core, agent, failures, say };
}

async function started(script: readonly Turn[] | Script, options: PageOptions = {}) {
  const { url, app } = await startServer({ script, agents: AGENTS });
  return { url, app, ...(await page(url, options)) };
}

type Page = Awaited<ReturnType<typeof page>>;

const texts = ({ agent }: Page) =>
  agent.messages.flatMap(({ role, content }) => (typeof content === "string" ? [`${role}: ${content}`] : []));

describe("a page with CopilotKit, without its runtime", () => {
  test("lists the agents", async () => {
    const { core } = await started([{ say: "ok" }]);
    expect(Object.values(core.agents).map(({ agentId, description }) => [agentId, description])).toEqual([
      ["assistant", "Helps."],
      ["other", ""],
    ]);
  });

  test("shows an answer, and finds it after a reload", async () => {
    const { url, failures, ...mine } = await started([
      { think: "Hm.", say: "Hello!", call: [{ tool: "write_file", args: { path: "a.txt", content: "x" } }] },
      { say: "Written." },
    ]);
    await mine.say("hi");
    expect(texts({ ...mine, failures }).slice(0, 3)).toEqual([
      "user: hi",
      "reasoning: Hm.",
      "assistant: Hello!",
    ]);
    expect(texts({ ...mine, failures }).at(-1)).toBe("assistant: Written.");
    const again = await page(url);
    await again.core.connectAgent({ agent: again.agent });
    expect(again.agent.messages).toEqual(mine.agent.messages);
    expect(again.agent.state).toEqual(mine.agent.state);
    expect([...failures, ...again.failures]).toEqual([]);
  });

  test("opens a thread that does not exist yet", async () => {
    const { core, agent, failures, say } = await started([{ say: "Welcome." }]);
    await core.connectAgent({ agent });
    expect(agent.messages).toEqual([]);
    await say("hi");
    expect(agent.messages.at(-1)?.content).toBe("Welcome.");
    expect(failures).toEqual([]);
  });

  test("that is opened during an answer shows the whole answer once", async () => {
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`).join(" ");
    const { url, agent, say } = await started([{ say: words, delay_ms: 20 }]);
    const sending = say("go");
    await until(() => String(agent.messages.at(-1)?.content).includes("word3"));
    const again = await page(url);
    await again.core.connectAgent({ agent: again.agent });
    await sending;
    expect(again.agent.messages).toEqual(agent.messages);
    expect(texts(again)).toEqual(["user: go", `assistant: ${words}`]);
  });

  test("stops the run without an error, and accepts the next message", async () => {
    const { url, core, agent, failures, say } = await started([
      { say: "a ".repeat(500), delay_ms: 20 },
      { say: "Here again." },
    ]);
    const sending = say("go");
    await until(() => agent.messages.length > 1);
    core.stopAgent({ agent });
    await sending;
    await expect.poll(async () => (await runsOf(url, "t1"))[0]?.status).toBe("cancelled");
    await say("and now?");
    expect(agent.messages.at(-1)?.content).toBe("Here again.");
    expect(failures).toEqual([]);
  });

  test("executes its own tool, and the agent continues with the result", async () => {
    const where: FrontendTool = {
      name: "where",
      description: "Where the user is.",
      parameters: z.object({ precise: z.boolean() }),
      handler: async (args) => ({ city: "Vienna", ...(args as object) }),
    };
    let read = "";
    const { url, ...mine } = await started(
      ({ messages }, call) => {
        read = JSON.stringify(messages);
        return call === 0 ? { call: [{ tool: "where", args: { precise: true } }] } : { say: "Vienna, then." };
      },
      { tools: [where] },
    );
    await mine.say("where am I?");
    expect(read).toContain("Vienna");
    expect(texts(mine)).toEqual([
      "user: where am I?",
      'tool: {"city":"Vienna","precise":true}',
      "assistant: Vienna, then.",
    ]);
    expect(await runsOf(url, "t1")).toHaveLength(2);
    expect(mine.failures).toEqual([]);
  });

  test("approves a call after a reload, as its hooks do", async () => {
    const { url, say } = await started([
      { say: "May I?", call: [{ tool: "execute", args: { command: "echo hi" } }] },
      { say: "It said hi." },
    ]);
    await say("run it");
    const again = await page(url);
    await again.core.connectAgent({ agent: again.agent });
    const [asked] = again.agent.pendingInterrupts;
    expect(asked).toMatchObject({ reason: "tool_call", message: "May it?" });
    // Its hooks put the answer into the list as well.
    again.agent.addMessage({
      ...{ id: "mine", role: "tool", toolCallId: asked?.toolCallId ?? "" },
      content: '{"approved":true}',
    });
    await again.core.runAgent({
      agent: again.agent,
      resume: [{ interruptId: asked?.id ?? "", status: "resolved", payload: { approved: true } }],
    });
    expect(texts(again)).toEqual([
      "user: run it",
      "assistant: May I?",
      expect.stringMatching(/^tool: .*hi/s),
      "assistant: It said hi.",
    ]);
    expect(again.failures).toEqual([]);
  });

  test("learns that the server shuts down", async () => {
    const { app, ...mine } = await started([{ say: "a ".repeat(500), delay_ms: 20 }]);
    const sending = mine.say("go");
    await until(() => texts(mine).length > 1);
    await app.close();
    await sending;
    expect(mine.failures.join()).toContain("shutting down");
  });
});
