// Old results are shortened in a request.

import { expect, test } from "vitest";
import { type Content, conversation, type Message } from "../../../src/agent/core/message.ts";
import { trimming } from "../../../src/agent/hooks/trimming.ts";
import { plainTool, play } from "../../support/agent.ts";
import { listening, sharedStart, textsIn } from "./listening.ts";
import { made } from "./made.ts";

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

test("old results are shortened for the model, but not in the thread", async () => {
  const messages = thread(long("a"), long("b"), long("c"));
  const { contents, messages: kept } = await shown(messages, { keep: 1, step: 1 });
  expect(contents).toEqual([cut("a"), cut("b"), long("c")]);
  expect(kept.slice(0, messages.length)).toEqual(messages);
});

test("errors are kept in full, and count", async () => {
  const messages = thread({ error: "E".repeat(900) }, long("b"), long("c"));
  const { results } = await shown(messages, { keep: 1, step: 1 });
  expect(results).toEqual([
    messages[2],
    expect.objectContaining({ content: cut("b") }),
    expect.objectContaining({ content: long("c") }),
  ]);
});

test("a short result is kept, and none becomes longer", async () => {
  const { contents } = await shown(thread("short", "x".repeat(510), long("c")), { keep: 0, step: 1 });
  expect(contents).toEqual(["short", "x".repeat(510), cut("c")]);
});

test("in a result with parts, the images are named", async () => {
  const image = { type: "image", media_type: "image/png", data: "aGk=".repeat(1000) } as const;
  const parts: Content = [{ type: "text", text: "a door" }, image];
  const { contents } = await shown(thread(parts, parts), { keep: 1, step: 1 });
  expect(contents).toEqual(["a door\n[image/png]", parts]);
});

test("no character is split", async () => {
  const { contents } = await shown(thread(`a${"🧵".repeat(600)}`), { keep: 0, step: 1 });
  expect(String(contents[0]).isWellFormed()).toBe(true);
});

test("a request begins like the previous one, except after every eighth result", async () => {
  const { model, asked } = listening((_, call) => (call < 30 ? { call: [{ tool: "read" }] } : { say: "ok" }));
  await play({
    model,
    tools: [plainTool("read", () => long("r"))],
    hooks: [made(trimming)],
    maxIterations: 40,
  });
  const changed = asked.flatMap((request, nth) =>
    nth > 0 && sharedStart(asked[nth - 1], request) < (asked[nth - 1]?.messages.length ?? 0) ? [nth] : [],
  );
  expect(changed).toEqual([12, 20, 28]);
  const whole = textsIn(asked[19]).filter((text) => text === long("r")).length;
  expect(whole).toBe(11);
});

test("the age of parallel calls is the order of their results", async () => {
  const calls = ["a", "b", "c"].map((id) => ({ id, name: "read", args: {} }));
  let talk = conversation()
    .user("go")
    .assistant("", ...calls);
  for (const { id } of calls.toReversed()) talk = talk.tool(id, "read", long(id));
  const { contents } = await shown([...talk.messages], { keep: 1, step: 1 });
  expect(contents).toEqual([cut("c"), cut("b"), long("a")]);
});

test("an empty thread causes no error", async () => {
  expect((await shown([])).outcome.status).toBe("success");
});
