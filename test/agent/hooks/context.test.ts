import { expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import { context } from "../../../src/agent/hooks/context.ts";
import { summarization } from "../../../src/agent/hooks/summarization/index.ts";
import { type Played, play } from "../../support/agent.ts";
import { listening, sharedStart, textsIn } from "./listening.ts";
import { made } from "./made.ts";

const TEXT = "We build with Node 24.";
const hook = () => made(context, { options: { text: TEXT } });

test("every request begins with the text, which the thread does not contain", async () => {
  const { model, asked } = listening([{ call: [{ tool: "nothing" }] }]);
  const { messages } = await play({ model, hooks: [hook()], say: "Hello." });
  expect(asked).toHaveLength(2);
  for (const request of asked) {
    expect(request.messages[0]).toMatchObject({ role: "user", content: TEXT });
    expect(textsIn(request).filter((text) => text === TEXT)).toHaveLength(1);
  }
  expect(sharedStart(asked[0], asked[1])).toBe(asked[0]?.messages.length);
  expect(messages[0]).toMatchObject({ content: "Hello." });
  expect(JSON.stringify(messages)).not.toContain(TEXT);
});

test("no summary includes it", async () => {
  const { model, asked } = listening(({ system }) =>
    system[0]?.id === "summarization" ? { say: "SUMMARY" } : { say: "word ".repeat(300) },
  );
  let last: Played | undefined;
  for (let nth = 0; nth < 12; nth++) {
    const hooks = [made(summarization, { agent: { context_window: 2000 } }), hook()];
    const before = last ? { messages: last.messages, state: last.state } : {};
    last = await play({ model, hooks, say: null, input: { input: [userMessage(`No. ${nth}`)], ...before } });
  }
  const summaries = asked.filter(({ system }) => system[0]?.id === "summarization");
  expect(summaries.length).toBeGreaterThan(0);
  for (const request of summaries) expect(textsIn(request).join()).not.toContain(TEXT);
  for (const request of asked)
    if (!summaries.includes(request)) expect(request.messages[0]?.content).toBe(TEXT);
});
