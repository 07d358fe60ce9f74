import { expect, test } from "vitest";
import { clerk, untilDone } from "../../examples/ask-a-person/main.ts";
import { poet, toyModel } from "../../examples/own-loop/main.ts";
import { play } from "../../examples/runtime/main.ts";
import { play as playTeam } from "../../examples/team/main.ts";
import { checkGrammar, type StreamEvent } from "../../src/index.ts";
import { program } from "./program.ts";

test("a runtime runs several agents and ends them", async () => {
  const lines: string[] = [];
  await play((line) => lines.push(line));
  expect(lines).toEqual([
    "Hello, Ada!",
    "Hello, Bob!",
    "4 messages",
    "at work: watchman",
    "the watchman's run: cancelled",
  ]);
});

test("a custom loop decides the next step", async () => {
  const handle = poet(toyModel()).run("the sea");
  const events: StreamEvent[] = [];
  for await (const event of handle.events()) events.push(event);
  expect(checkGrammar(events)).toEqual([]);
  expect((await handle.result).messages.map(({ content }) => content)).toEqual([
    "the sea",
    "A poem about the sea. First a draft.",
    "Water, much of it.",
    "It does not rhyme.",
    "Now the final one.",
    "The sea, the sea: so wet, so free.",
  ]);
});

test("a team works in one program, and parents and children can find each other", async () => {
  const lines: string[] = [];
  await playTeam((line) => lines.push(line));
  expect(lines).toEqual([
    "  I look it up.",
    "completed: Skeins have 100 m.",
    "100 metres, I am told.",
    "the child's messages: 4; its parent: editor",
  ]);
});

test("a rule asks a person, and other calls run meanwhile", async () => {
  const asked: string[] = [];
  const handle = clerk().run("Pay Ada what we owe.");
  const { text } = await untilDone(handle, ({ prompt, args }) => {
    asked.push(`${prompt} ${args.amount}`);
    return { decision: "deny", message: "Not before Monday." };
  });
  expect(asked).toEqual(["So much money? 5000"]);
  expect(text).toBe("That is all.");
  const results = (await handle.history()).filter(({ role }) => role === "tool");
  expect(results).toMatchObject([{ content: "Paid 5 to Ada." }, { error: "Not before Monday." }]);
});

test.each([
  ["runtime/main.ts", "the watchman's run: cancelled"],
  ["team/main.ts", "100 metres"],
  ["own-loop/main.ts", "assistant: The sea, the sea"],
  ["ask-a-person/main.ts", "So much money?"],
])("%s is a program that ends by itself", async (file, text) => {
  const { code, output } = await program(file, []);
  expect(output).toContain(text);
  expect(code).toBe(0);
});
