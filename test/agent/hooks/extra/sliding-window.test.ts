// Old turns are left out of a request.

import fc from "fast-check";
import { expect, test } from "vitest";
import { conversation, type Message, unanswered, userMessage } from "../../../../src/agent/core/message.ts";
import { context } from "../../../../src/agent/hooks/context.ts";
import { slidingWindow } from "../../../../src/agent/hooks/extra-hooks.ts";
import { play } from "../../../support/agent.ts";
import { listening, textsIn } from "../listening.ts";
import { made } from "../made.ts";

await slidingWindow.load?.();

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

test("a thread that fits is shown in full", async () => {
  const messages = talk(0, 0);
  expect((await shown(messages, { max_messages: 5 })).texts).toHaveLength(5);
});

test("a longer thread is shown only with its newest turns, and the thread keeps everything", async () => {
  const messages = talk(0, 0, 1);
  const { texts, messages: kept } = await shown(messages, { max_messages: 8, keep: 0.75 });
  expect(texts).toEqual(["question 2", "", "result 2.0", "answer 2", "new"]);
  expect(kept.slice(0, messages.length)).toEqual(messages);
});

test("the window does not move until it is full again", async () => {
  const options = { max_messages: 8, keep: 0.5 };
  const starts: (string | undefined)[] = [];
  for (let turns = 1; turns <= 9; turns++)
    starts.push((await shown(talk(...Array.from({ length: turns }, () => 0)), options)).texts[0]);
  const [zero, three, six] = ["question 0", "question 3", "question 6"];
  expect(starts).toEqual([zero, zero, zero, three, three, three, six, six, six]);
});

test("the newest turn is shown in full, however long it is", async () => {
  const { texts } = await shown(talk(0, 20).slice(0, -1), { max_messages: 4 }, null);
  expect(texts[0]).toBe("question 1");
  expect(texts).toHaveLength(41);
});

test("system messages are kept at the front", async () => {
  const [order, ...rest] = [...conversation().system("Speak French.").messages, ...talk(0, 0, 0, 0)];
  const { texts } = await shown([order as Message, ...rest], { max_messages: 4 });
  expect(texts[0]).toBe("Speak French.");
  expect(texts[1]).toMatch(/^question/);
  expect(texts).toHaveLength(4);
});

test("consecutive messages of a user form one turn", async () => {
  const messages = [...talk(0, 0), userMessage("first"), userMessage("second")];
  const { texts } = await shown(messages, { max_messages: 4, keep: 0.25 }, "third");
  expect(texts).toEqual(["first", "second", "third"]);
});

test("a call is never separated from its result, and the window never moves back", async () => {
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
test("the text of the hook `context` remains visible", async () => {
  const { model, asked } = listening([]);
  const hooks = [
    made(slidingWindow, { options: { max_messages: 4, keep: 0.75 } }),
    made(context, { options: { text: "We use Node." } }),
  ];
  await play({ model, hooks, input: { messages: talk(0, 0, 0, 0) } });
  expect(textsIn(asked[0])).toEqual(["We use Node.", "question 3", "answer 3", "hello"]);
});
