import { expect, test } from "vitest";
import { calculator } from "../../examples/in-process/main.ts";
import { checkGrammar, type StreamEvent } from "../../src/index.ts";
import { program } from "./program.ts";

test("an agent in your own program calls your tool, through your hook", async () => {
  const lines: string[] = [];
  const events: StreamEvent[] = [];
  const handle = calculator((line) => lines.push(line)).run("What is 6 times 7?");
  for await (const event of handle.events()) events.push(event);
  expect(await handle.result).toMatchObject({ status: "success", text: "It is 42." });
  expect(lines).toEqual(['multiply is called with {"a":6,"b":7}', "multiply has answered"]);
  expect(checkGrammar(events)).toEqual([]);
});

test("the thread continues from question to question", async () => {
  const agent = calculator(() => {});
  const first = agent.run("6 times 7");
  await first.result;
  await agent.run("3 times 5", { thread: first.id }).result;
  const answers = (await first.history()).filter(({ content }) => String(content).startsWith("It is"));
  expect(answers.map(({ content }) => content)).toEqual(["It is 42.", "It is 15."]);
});

test("is a program that prints the answer", async () => {
  const { code, output } = await program("in-process/main.ts", ["3 by 5"]);
  expect(output).toContain("It is 15.");
  expect(code).toBe(0);
});
