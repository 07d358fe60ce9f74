// Approvals, questions and the front end's own tools, as LangGraph's own SDK answers them.

import type { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import type { Script, Turn } from "../../../src/agent/models/scripted.ts";
import { all, clientFor, contents, lastValues, said, started, toolIn, type Values } from "./client.ts";

describe("an approval", () => {
  const asking: readonly Turn[] = [
    { say: "May I?", call: [{ tool: "execute", args: { command: "echo ran" }, id: "call_1" }] },
    { say: "All settled." },
  ];

  async function asked(script: readonly Turn[] | Script = asking) {
    const { url, client } = await started(script);
    const frames = await all(
      client.runs.stream("t1", "assistant", {
        input: said("run it"),
        streamMode: ["values", "updates"],
        ifNotExists: "create",
      }),
    );
    return { url, client, frames };
  }
  const resume = async (client: Client, value: unknown) =>
    (await client.runs.wait("t1", "assistant", { command: { resume: value } })) as unknown as Values;

  test("is in the stream, the state, the thread and the search", async () => {
    const { url, frames } = await asked();
    const [interrupt, ...none] = lastValues(frames)?.__interrupt__ ?? [];
    expect(none).toEqual([]);
    expect(interrupt?.value).toEqual({
      action_requests: [{ name: "execute", args: { command: "echo ran" }, description: "May it?" }],
      review_configs: [
        { action_name: "execute", allowed_decisions: ["approve", "edit", "reject", "respond"] },
      ],
    });
    expect(frames.filter(({ event }) => event === "updates").at(-1)?.data).toEqual({
      __interrupt__: [interrupt],
    });
    const fresh = clientFor(url);
    expect(await fresh.threads.getState("t1")).toMatchObject({
      next: ["tools"],
      tasks: [{ interrupts: [interrupt] }],
      interrupts: [interrupt],
    });
    const [thread] = await fresh.threads.search({ status: "interrupted" });
    expect(Object.values(thread?.interrupts ?? {})).toEqual([[interrupt]]);
  });

  test.each([
    ["approved", { decisions: [{ type: "approve" }] }, /ran\n/],
    ["approved by a word", "yes", /ran\n/],
    [
      "edited",
      { decisions: [{ type: "edit", edited_action: { name: "execute", args: { command: "echo other" } } }] },
      /other\n/,
    ],
    ["denied", { decisions: [{ type: "reject", message: "Not today." }] }, /Not today\./],
    ["answered in the older form", [{ type: "response", args: "Use the other one." }], /Use the other one\./],
  ])("is %s, and the model learns the outcome", async (_, value, result) => {
    let read = "";
    const { client } = await asked(({ messages }, call) => {
      read = JSON.stringify(messages.at(-1)).replaceAll("\\\\n", "\n").replaceAll("\\n", "\n");
      return asking[call];
    });
    const values = await resume(client, value);
    expect(values.__interrupt__).toBeUndefined();
    expect(toolIn(values)).toMatchObject({ tool_call_id: "call_1" });
    expect(contents(values)?.at(-1)).toBe("All settled.");
    expect(read).toMatch(result);
    await expect(resume(client, value)).rejects.toThrow(/409/);
  });

  test("that is left open is settled by goto __end__ and by a new message", async () => {
    const { client } = await asked([...asking.slice(0, 1), ...asking.slice(0, 1), { say: "Next." }]);
    const ended = await all(
      client.runs.stream("t1", "assistant", { command: { goto: "__end__" }, streamMode: "values" }),
    );
    expect(toolIn(lastValues(ended))).toMatchObject({ status: "error" });
    expect(await client.threads.get("t1")).toMatchObject({ status: "idle" });
    await client.runs.wait("t1", "assistant", { input: said("again") });
    await client.threads.updateState("t1", { values: null, asNode: "__end__" });
    expect(await client.threads.get("t1")).toMatchObject({ status: "idle" });
    const values = (await client.runs.wait("t1", "assistant", {
      input: said("something else"),
    })) as unknown as Values;
    expect(contents(values)?.at(-1)).toBe("Next.");
  });

  test("next to another can be answered alone only by a list in the older format; the rest is asked again", async () => {
    const both: Turn = {
      call: [
        { tool: "execute", args: { command: "echo one" }, id: "call_1" },
        { tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] }, id: "call_2" },
      ],
    };
    const { client, frames } = await asked([both, { say: "Blue it is." }]);
    expect(lastValues(frames)?.__interrupt__).toHaveLength(1);
    // As deep-agents-ui does with a click on any of its cards.
    await expect(resume(client, { decisions: [{ type: "approve" }] })).rejects.toThrow(
      "one decision for each request (execute, ask_user)",
    );
    const left = await resume(client, [{ type: "accept", args: null }]);
    expect(left.__interrupt__?.[0]?.value).toMatchObject({
      action_requests: [{ name: "ask_user", args: { options: ["red", "blue"] }, description: "Which?" }],
    });
    expect(contents(await resume(client, "Blue"))?.at(-1)).toBe("Blue it is.");
  });

  /** What the pages send, as their users meet the interrupt. */
  test.each([
    ["agent-chat-ui's form", (args: object) => ({ type: "edit", edited_action: { name: "ask_user", args } })],
    [
      "Agent Inbox's form",
      (args: object) => ({ type: "edit", args: { action: "ask_user", args } }) as object,
    ],
    ["Agent Inbox's response", () => ({ type: "reject", args: "Blue" })],
  ])("together with a question is answered in one list of decisions, by %s", async (_, decision) => {
    const three: Turn = {
      call: [
        { tool: "execute", args: { command: "echo one" }, id: "call_1" },
        { tool: "ask_user", args: { question: "Which?", options: ["red", "blue"] }, id: "call_2" },
        { tool: "execute", args: { command: "echo two" }, id: "call_3" },
      ],
    };
    const { client, frames } = await asked([three, { say: "Settled." }]);
    const [interrupt] = lastValues(frames)?.__interrupt__ ?? [];
    const { action_requests = [] } = (interrupt?.value ?? {}) as {
      action_requests?: { name: string; args: object }[];
    };
    expect(action_requests.map(({ name }) => name)).toEqual(["execute", "ask_user", "execute"]);
    const filled = { ...action_requests[1]?.args, answer: "Blue" };
    const values = await resume(client, {
      decisions: [{ type: "approve" }, decision(filled), { type: "reject", message: "Not that." }],
    });
    expect(values.__interrupt__).toBeUndefined();
    const results = values.messages.flatMap((message) =>
      message.type === "tool" ? [`${message.status} ${message.content}`] : [],
    );
    expect(results.toSorted()).toEqual([
      "error Not that.",
      "success blue",
      expect.stringMatching(/^success one\n/),
    ]);
  });

  test("is not needed by a tool of the front end, whose result reaches the model", async () => {
    let read = "";
    const { client } = await started(({ messages }, call) => {
      read = JSON.stringify(messages.at(-1));
      return call === 0 ? { call: [{ tool: "where", id: "call_1" }] } : { say: "Vienna, then." };
    });
    const where = { name: "where", description: "Where the user is.", parameters: { type: "object" } };
    const waiting = (await client.runs.wait("t1", "assistant", {
      input: said("where am I?"),
      config: { configurable: { tools: [where] } },
      ifNotExists: "create",
    })) as unknown as Values;
    const [interrupt] = waiting.__interrupt__ ?? [];
    expect(interrupt?.value).toEqual({ type: "tool", tool_call: { id: "call_1", name: "where", args: {} } });
    const values = await resume(client, { [interrupt?.id ?? ""]: { call_1: { city: "Vienna" } } });
    expect(contents(values)?.at(-1)).toBe("Vienna, then.");
    expect(read).toContain("Vienna");
  });
});
