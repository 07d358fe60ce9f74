// What old messages look like in a request: results shortened, turns left out.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Content,
  conversation,
  type Message,
  unanswered,
  userMessage,
} from "../../../src/agent/core/message.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { slidingWindow, trimming } from "../../../src/agent/hooks/trimming.ts";
import { play } from "../../support/agent.ts";
import { listening, sharedStart, textsIn } from "./listening.ts";
import { made } from "./made.ts";

describe("trimming", () => {
  /** A thread with these results of tools. */
  function thread(...results: (Content | { error: string })[]): Message[] {
    let talk = conversation().user("go");
    for (const [nth, result] of results.entries()) {
      const id = `call_${nth}`;
      talk = talk.assistant("", { id, name: "read", args: {} });
      talk =
        typeof result === "object" && "error" in result
          ? talk.tool(id, "read", "x".repeat(900), result.error)
          : talk.tool(id, "read", result);
    }
    return [...talk.messages];
  }

  async function shown(messages: Message[], options: Record<string, unknown> = {}) {
    const { model, asked } = listening([{ say: "ok" }]);
    const played = await play({ model, hooks: [made(trimming, { options })], input: { messages } });
    const results = asked[0]?.messages.filter(({ role }) => role === "tool") ?? [];
    return { ...played, results, contents: results.map(({ content }) => content) };
  }

  const long = (letter: string) => letter.repeat(900);
  const cut = (letter: string) => `${letter.repeat(500)}\n[… 400 characters of this old result are left out]`;

  test("old results are shortened for the model; the thread keeps them", async () => {
    const messages = thread(long("a"), long("b"), long("c"));
    const { contents, messages: kept } = await shown(messages, { keep: 1, step: 1 });
    expect(contents).toEqual([cut("a"), cut("b"), long("c")]);
    expect(kept.slice(0, messages.length)).toEqual(messages);
  });

  test("errors stay whole, and count", async () => {
    const messages = thread({ error: "E".repeat(900) }, long("b"), long("c"));
    const { results } = await shown(messages, { keep: 1, step: 1 });
    expect(results).toEqual([
      messages[2],
      expect.objectContaining({ content: cut("b") }),
      expect.objectContaining({ content: long("c") }),
    ]);
  });

  test("a short result stays, and none becomes longer than it was", async () => {
    const { contents } = await shown(thread("short", "x".repeat(510), long("c")), { keep: 0, step: 1 });
    expect(contents).toEqual(["short", "x".repeat(510), cut("c")]);
  });

  test("of a result in parts the images are named", async () => {
    const image = { type: "image", media_type: "image/png", data: "aGk=".repeat(1000) } as const;
    const parts: Content = [{ type: "text", text: "a door" }, image];
    const { contents } = await shown(thread(parts, parts), { keep: 1, step: 1 });
    expect(contents).toEqual(["a door\n[image/png]", parts]);
  });

  test("no character is cut in two", async () => {
    const { contents } = await shown(thread(`a${"🧵".repeat(600)}`), { keep: 0, step: 1 });
    expect(String(contents[0]).isWellFormed()).toBe(true);
  });

  test("a request begins as the one before did, except at every eighth result", async () => {
    const { model, asked } = listening((_, call) =>
      call < 30 ? { call: [{ tool: "read" }] } : { say: "ok" },
    );
    const read = defineTool({
      ...{ name: "read", description: "", parameters: z.object({}) },
      execute: () => long("r"),
    });
    await play({ model, tools: [read], hooks: [made(trimming)], maxIterations: 40 });
    const changed = asked.flatMap((request, nth) =>
      nth > 0 && sharedStart(asked[nth - 1], request) < (asked[nth - 1]?.messages.length ?? 0) ? [nth] : [],
    );
    expect(changed).toEqual([12, 20, 28]);
    const whole = textsIn(asked[19]).filter((text) => text === long("r")).length;
    expect(whole).toBe(11);
  });

  test("a thread that is shown again looks the same", async () => {
    const messages = thread(...Array.from({ length: 15 }, () => long("a")));
    const [one, other] = [await shown(messages), await shown(messages)];
    expect(one.contents).toEqual(other.contents);
    expect(one.contents.filter((content) => content === cut("a"))).toHaveLength(8);
  });

  test("calls side by side are old in the order of their results", async () => {
    const calls = ["a", "b", "c"].map((id) => ({ id, name: "read", args: {} }));
    let talk = conversation()
      .user("go")
      .assistant("", ...calls);
    for (const { id } of calls.toReversed()) talk = talk.tool(id, "read", long(id));
    const { contents } = await shown([...talk.messages], { keep: 1, step: 1 });
    expect(contents).toEqual([cut("c"), cut("b"), long("a")]);
  });

  test("an empty thread is no trouble", async () => {
    expect((await shown([])).outcome.status).toBe("success");
  });
});

describe("sliding_window", () => {
  /** Turns of a question, so many calls, and an answer. */
  function talk(...calls: number[]): Message[] {
    let talk = conversation();
    for (const [turn, count] of calls.entries()) {
      talk = talk.user(`question ${turn}`);
      for (let nth = 0; nth < count; nth++) {
        const id = `call_${turn}_${nth}`;
        talk = talk.assistant("", { id, name: "read", args: {} }).tool(id, "read", `result ${turn}.${nth}`);
      }
      talk = talk.assistant(`answer ${turn}`);
    }
    return [...talk.messages];
  }

  /** What the model is shown of a thread, the new message included. */
  async function shown(messages: Message[], options: Record<string, unknown>, say: string | null = "new") {
    const { model, asked } = listening([{ say: "ok" }]);
    const played = await play({
      ...{ model, say, hooks: [made(slidingWindow, { options })], input: { messages } },
    });
    return { texts: textsIn(asked[0]), request: asked[0], messages: played.messages };
  }

  test("a thread that fits is shown whole", async () => {
    const messages = talk(0, 0);
    expect((await shown(messages, { max_messages: 5 })).texts).toHaveLength(5);
  });

  test("of one that does not, the newest turns are shown, and the thread keeps all", async () => {
    const messages = talk(0, 0, 1);
    const { texts, messages: kept } = await shown(messages, { max_messages: 8, keep: 0.75 });
    expect(texts).toEqual(["question 2", "", "result 2.0", "answer 2", "new"]);
    expect(kept.slice(0, messages.length)).toEqual(messages);
  });

  test("it stands still until it is full again", async () => {
    const options = { max_messages: 8, keep: 0.5 };
    const starts: (string | undefined)[] = [];
    for (let turns = 1; turns <= 9; turns++)
      starts.push((await shown(talk(...Array.from({ length: turns }, () => 0)), options)).texts[0]);
    const [zero, three, six] = ["question 0", "question 3", "question 6"];
    expect(starts).toEqual([zero, zero, zero, three, three, three, six, six, six]);
  });

  test("the newest turn is shown whole, however long it is", async () => {
    const { texts } = await shown(talk(0, 20).slice(0, -1), { max_messages: 4 }, null);
    expect(texts[0]).toBe("question 1");
    expect(texts).toHaveLength(41);
  });

  test("system messages stay, in front", async () => {
    const [order, ...rest] = [...conversation().system("Speak French.").messages, ...talk(0, 0, 0, 0)];
    const { texts } = await shown([order as Message, ...rest], { max_messages: 4 });
    expect(texts[0]).toBe("Speak French.");
    expect(texts[1]).toMatch(/^question/);
    expect(texts).toHaveLength(4);
  });

  test("several messages of a user in a row are one turn", async () => {
    const messages = [...talk(0, 0), userMessage("first"), userMessage("second")];
    const { texts } = await shown(messages, { max_messages: 4, keep: 0.25 }, "third");
    expect(texts).toEqual(["first", "second", "third"]);
  });

  test("no call is ever parted from its result, and the window never goes back", async () => {
    const turns = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 12 });
    const options = fc.record({
      max_messages: fc.integer({ min: 2, max: 20 }),
      keep: fc.double({ min: 0.01, max: 1, noNaN: true }),
    });
    await fc.assert(
      fc.asyncProperty(turns, options, async (calls, window) => {
        const all = talk(...calls);
        let first = 0;
        // Every moment at which a model would be asked.
        for (let end = 1; end <= all.length; end++) {
          const thread = all.slice(0, end);
          if (thread.at(-1)?.role === "assistant" || unanswered(thread).length > 0) continue;
          const { request } = await shown(thread, window, null);
          const messages = request?.messages ?? [];
          expect(messages[0]?.role).toBe("user");
          expect(messages.at(-1)).toEqual(thread.at(-1));
          const start = thread.findIndex(({ id }) => id === messages[0]?.id);
          expect(thread.slice(start)).toEqual(messages);
          expect(start).toBeGreaterThanOrEqual(first);
          first = start;
          const isOneTurn = messages.filter(({ role }) => role === "user").length === 1;
          if (!isOneTurn) expect(messages.length).toBeLessThanOrEqual(window.max_messages);
        }
      }),
      { numRuns: 40 },
    );
  });
});
