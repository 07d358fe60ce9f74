// What is said and shown in AG-UI's own client, against the whole server.

import { describe, expect, test } from "vitest";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { postJson, runsOf } from "../../support/native.ts";
import { HELPED } from "../../support/team.ts";
import { callsOf, essence, newAgent, reopened, say, started, texts, VERSIONS } from "./http-agent.ts";

describe.each(VERSIONS)("HttpAgent %s", (version, Client) => {
  test("shows the agent's thoughts and text as they arrive, and the same after a reload", async () => {
    const { url, agent } = await started(Client, [{ think: "Let me see.", say: "You said {{user}}." }]);
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
    expect(usage).toMatchObject([{ outputTokens: 7 }]);
    expect(essence(await reopened(Client, url))).toEqual(essence(agent));
  });

  test("shows tools of the server with their results, and todos and files in its state", async () => {
    const { url, agent } = await started(Client, [
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

  test("shows the provider's error, and keeps the text until then", async () => {
    const { agent } = await started(Client, [
      { say: "Half of", fail: { code: "model_rejected", message: "The provider said no." } },
    ]);
    let failure = "";
    await say(agent, "go", undefined, {
      onRunErrorEvent: ({ event }) => {
        failure = `${event.code}: ${event.message}`;
      },
    });
    expect(failure).toMatch(/^model_rejected: .*The provider said no\./);
    expect(texts(agent)).toEqual(["user: go", "assistant: Half of"]);
  });

  test("retracts the text of a failed attempt", async () => {
    const { agent } = await started(Client, [
      { say: "Half of", fail: { code: "model_overloaded", message: "busy", retry_after_ms: 1 } },
      { say: "The whole." },
    ]);
    await say(agent, "go");
    expect(texts(agent)).toEqual(["user: go", "assistant: The whole."]);
  });

  test("sends images, and the model sees them; URLs and broken data are refused with the reason", async () => {
    let seen: unknown;
    const { agent } = await started(Client, ({ messages }) => {
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
    agent.messages.pop();
    agent.addMessage(image({ type: "data", value: "no image!", mimeType: "image/png" }));
    await expect(agent.runAgent()).rejects.toMatchObject({
      payload: { message: expect.stringMatching(/a medium of type `image\/png`: data: .*base64/) },
    });
  });

  test("recognises a subagent, and keeps its text separate", async () => {
    const { url } = await started(Client, HELPED.script, { agents: HELPED.agents });
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

  test("shows the user's messages to the running agent", async () => {
    const { tool, open, entered } = gate();
    const { url, agent } = await started(Client, gated, { tools: [tool], agents: WITH_GATE });
    const sending = say(agent, "go");
    await entered;
    const [run] = await runsOf(url, "t1");
    const steered = await postJson(`${url}/threads/t1/runs/${run?.id}/messages`, { input: "Be quick." });
    expect(steered.status).toBe(202);
    open();
    await sending;
    expect(texts(agent)).toEqual([
      "user: go",
      "assistant: Wait.",
      "tool: open",
      "user: Be quick.",
      "assistant: Through.",
    ]);
  });

  test("sends a new thread its context and instructions once", async () => {
    const seen: string[] = [];
    const { agent } = await started(Client, ({ messages }) => {
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
});
