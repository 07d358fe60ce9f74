import { expect, test } from "vitest";
import { ask, newAgent } from "../../examples/in-process/main.ts";
import { checkGrammar, lastContent, type Message, type StreamEvent } from "../../src/index.ts";
import { program } from "./program.ts";

test("an agent in your own program calls your tool, through your hook", async () => {
  const lines: string[] = [];
  const events: StreamEvent[] = [];
  const thread: Message[] = [];
  const agent = newAgent((line) => lines.push(line));
  const outcome = await ask(agent, thread, "What is 6 times 7?", (event) => events.push(event));
  expect(outcome.status).toBe("success");
  expect(lastContent(thread)).toBe("It is 42.");
  expect(lines).toEqual(['multiply is called with {"a":6,"b":7}', "multiply has answered"]);
  expect(checkGrammar(events)).toEqual([]);
});

test("the thread goes on from question to question", async () => {
  const thread: Message[] = [];
  for (const question of ["6 times 7", "3 times 5"])
    await ask(
      newAgent(() => {}),
      thread,
      question,
      () => {},
    );
  const answers = thread.filter(({ role, content }) => role === "assistant" && content !== "Let me see. ");
  expect(answers.map(({ content }) => content)).toEqual(["It is 42.", "It is 15."]);
});

test("is a program: it prints the answer", async () => {
  const { code, output } = await program("in-process/main.ts", ["3 by 5"]);
  expect(output).toContain("It is 15.");
  expect(code).toBe(0);
});
