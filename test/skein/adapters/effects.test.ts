import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Message, textOf, userMessage } from "../../../src/agent/core/message.ts";
import type { ModelRequest } from "../../../src/agent/core/model.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { type Effect, fromEffect, type IterationContext } from "../../../src/skein/adapters/index.ts";
import { agentWith, runtimeWith } from "../../support/library.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  execute: () => "seen",
});
const texts = (messages: readonly Message[]) => messages.map(({ content }) => textOf(content));

/** Three model calls, two of which call a tool. */
function running(...effects: Effect[]) {
  const requests: ModelRequest[] = [];
  const script = (request: ModelRequest) => {
    requests.push(request);
    return requests.length % 3 === 0 ? { say: "end" } : { say: "look", call: [{ tool: "look" }] };
  };
  const agent = agentWith(script, { name: "looker", tools: [look], hooks: [fromEffect(...effects)] });
  const runtime = runtimeWith();
  return { requests, run: (input: string) => runtime.spawn(agent, { input, thread: "t1" }) };
}

describe("effects", () => {
  test("run in order, before each model call and after its reply, before its tools", async () => {
    const seen: string[] = [];
    const note =
      (name: string) =>
      ({ phase, iteration, agentName, model, chat }: IterationContext) =>
        void seen.push(
          `${name} ${phase} ${iteration} ${agentName} ${model.name} ${chat.messages.at(-1)?.role}`,
        );
    await running(note("a"), { eval: note("b") }).run("go").result;
    expect(seen.slice(0, 6)).toEqual([
      "a before_complete 0 looker scripted:test user",
      "b before_complete 0 looker scripted:test user",
      "a after_complete 0 looker scripted:test assistant",
      "b after_complete 0 looker scripted:test assistant",
      "a before_complete 1 looker scripted:test tool",
      "b before_complete 1 looker scripted:test tool",
    ]);
    expect(seen).toHaveLength(12);
  });

  test("shorten the model's view from then on; the thread keeps everything", async () => {
    const { requests, run } = running(({ phase, iteration, chat }) => {
      if (phase === "before_complete" && iteration === 1) chat.replace([userMessage("summary")]);
    });
    const handle = run("go");
    await handle.result;
    expect(requests.map(({ messages }) => texts(messages))).toEqual([
      ["go"],
      ["summary"],
      ["summary", "look", "seen"],
    ]);
    expect(texts(await handle.history())).toEqual(["go", "look", "seen", "look", "seen", "end"]);
  });

  test("add a message, which then keeps its position", async () => {
    const { requests, run } = running(({ phase, iteration, chat }) => {
      if (phase === "after_complete" && iteration === 0) chat.append(userMessage("Hurry."));
    });
    await run("go").result;
    expect(texts(requests[1]?.messages ?? [])).toEqual(["go", "look", "seen", "Hurry."]);
    expect(texts(requests[2]?.messages ?? [])).toEqual(["go", "look", "seen", "Hurry.", "look", "seen"]);
  });

  test("fail the run with the error that they throw, in either phase", async () => {
    for (const failing of ["before_complete", "after_complete"]) {
      const { run } = running(({ phase }) => {
        if (phase === failing) throw new Error("enough");
      });
      expect((await run("go").result).status).toBe("error");
    }
  });

  test("are reset when a run begins", async () => {
    let calls = 0;
    const { run } = running({
      reset: () => {
        calls = 0;
      },
      eval: ({ phase }) => {
        if (phase === "before_complete") calls++;
      },
    });
    await run("go").result;
    await run("again").result;
    expect(calls).toBe(3);
  });
});
