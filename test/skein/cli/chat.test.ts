import { expect } from "vitest";
import { z } from "zod";
import type { Thread } from "../../../src/agent/core/records.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { warning } from "../../../src/protocol/event.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";
import { chatting, testAtTerminal as test } from "./terminal.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user]
    permissions: { rules: [{ ask: execute, message: May it run? }] }
`;

const AGENTS_WITH_STEP = "agents: { assistant: { model: 'scripted:test', tools: [step] } }";

async function resultsOn(url: string): Promise<string[]> {
  const { items } = (await (await fetch(`${url}/threads/t1/messages`)).json()) as {
    items: { role: string; content: string; error?: string }[];
  };
  return items.flatMap(({ role, content, error }) => (role === "tool" ? [error ?? content] : [])).toSorted();
}

const execute = (command: string) => ({ tool: "execute", args: { command } });
const question = (args: object) => ({ tool: "ask_user", args: { question: "Which colour?", ...args } });

test("questions of a run are answered in the terminal, and the run resumes", async () => {
  const script = [
    { call: [execute("echo it ran")] },
    { call: [execute("echo not this"), question({ kind: "select", options: ["red", "blue"] })] },
    { say: "All answered." },
  ];
  const { url } = await startServer({ script, agents: AGENTS });
  const { say, ended } = chatting(url);
  await say("> ", "go");
  await say("May it run?", "y");
  await say("May it run?", "no, that is enough");
  await say("? Which colour?", "2");
  await say("All answered.", "/quit");
  expect(await ended).toEqual([0, null]);
  expect(await resultsOn(url)).toEqual(["blue", "it ran\n[exit_code: 0]", "that is enough"]);
});

test("several options are selected with commas, yes and no with a letter", async () => {
  const script = [
    { call: [question({ kind: "multi_select", options: ["red", "green", "blue"] })] },
    { call: [question({ kind: "confirm" })] },
    { call: [question({})] },
    { say: "All answered." },
  ];
  const { url } = await startServer({ script, agents: AGENTS });
  const { say, ended } = chatting(url);
  await say("> ", "go");
  await say("several with commas", "1, 3");
  await say("? Which colour?", "n");
  await say("? Which colour?", "17");
  await say("All answered.", "/quit");
  expect(await ended).toEqual([0, null]);
  expect(await resultsOn(url)).toEqual(["17", "no", "red, blue"]);
});

test("a server that stops during a run is reported, and its run is followed once it is back", async () => {
  const dir = await temporaryFolder();
  const script = [{ say: "slow words", delay_ms: 600_000 }];
  const first = await startServer({ script, dir, config: { store: "sqlite" } });
  const { say, hear, ended } = chatting(first.url);
  await say("> ", "go");
  const status = async () => ((await (await fetch(`${first.url}/threads/t1`)).json()) as Thread).status;
  await expect.poll(status).toBe("busy");
  await first.app.close();
  await hear("Retrying; press Ctrl-C to stop.");
  const config = { store: "sqlite", listen: { port: Number(new URL(first.url).port) } };
  await startServer({ script: [{ say: "Back again." }], dir, config });
  await say("Back again.", "/quit");
  expect(await ended).toEqual([0, null]);
});

test("a model's question cannot hide its subject", async () => {
  const script = [{ call: [execute("rm -rf / \u202e\u009b2K\u001b[2K# harmless")] }, { say: "Never." }];
  const { url } = await startServer({ script, agents: AGENTS });
  const { say, hear } = chatting(url);
  await say("> ", "go");
  await hear("May it run?");
  const shown = await hear("[y]es");
  expect(shown).toContain("rm -rf / \\u{202e}\\u{9b}2K");
  for (const hidden of ["\u202e", "\u009b", "\u001b"]) expect(shown).not.toContain(hidden);
});

test("text of models, tools and servers cannot control the terminal", async () => {
  const hostile = "\u001b[8m\u001b]52;c;b3duZWQ=\u0007\u001b]0;owned\u009b2J\u202e";
  const leak = defineTool({
    name: "leak",
    description: "Reports its progress and fails.",
    parameters: z.object({}),
    async *execute(_args, { id: call_id, name }) {
      yield { event: "on_tool_progress", name, data: { call_id, output: `progress${hostile}` } } as const;
      yield warning("leak", `warning${hostile}`);
      throw new Error(`failure${hostile}`);
    },
  });
  const script = [
    { think: `thought${hostile}`, say: `text${hostile}\tin\ntwo lines`, call: [{ tool: "leak" }] },
    { call: [question({ question: `Which${hostile}?`, options: [`red${hostile}`] })] },
    { say: "Done." },
  ];
  const agents = "agents: { assistant: { model: 'scripted:test', tools: [leak, ask_user] } }";
  const { url } = await startServer({ script, agents, tools: [leak] });
  const { say, ended } = chatting(url);
  await say("> ", "go");
  const shown = `${await say("red", "1")}${await say("Done.", "/quit")}`;
  expect(await ended).toEqual([0, null]);
  expect(shown).toContain("\tin\ntwo lines");
  for (const kind of ["thought", "text", "progress", "! warning", "failure", "Which"])
    expect(shown).toContain(`${kind}\\u{1b}[8m`);
  expect(shown).not.toMatch(/[^\P{C}\n\t]/u);
});

test("arguments are edited as JSON, and an answer is remembered with the agent", async () => {
  const script = [
    { call: [execute("echo one")] },
    { call: [execute("echo two")] },
    { call: [execute("echo two")] },
    { say: "All answered." },
  ];
  const { url } = await startServer({ script, agents: AGENTS });
  const { say, ended } = chatting(url);
  await say("> ", "go");
  await say("[e]dit", "e");
  await say("as JSON", "echo three");
  await say("again", '{"command": "echo three"}');
  await say("[A]lways with this agent", "A");
  await say("All answered.", "/quit");
  expect(await ended).toEqual([0, null]);
  expect(await resultsOn(url)).toEqual([
    "three\n[exit_code: 0]",
    "two\n[exit_code: 0]",
    "two\n[exit_code: 0]",
  ]);
  const rules = (await (await fetch(`${url}/agents/assistant/permissions`)).json()) as { items: unknown[] };
  expect(rules.items).toHaveLength(1);
});

test("`a command` and `A tool` remember an answer for more than the same call", async () => {
  const script = [
    { call: [execute("echo one")] },
    { call: [execute("echo two")] },
    { call: [execute("ls")] },
    { call: [execute("pwd")] },
    { say: "All answered." },
  ];
  const { url } = await startServer({ script, agents: AGENTS });
  const { say, ended } = chatting(url);
  await say("> ", "go");
  await say("`a command`: commands that begin with echo, `a tool`: every call to execute", "a command");
  const asked = await say("[A]lways with this agent", "A tool");
  expect(asked).toContain("ls");
  expect(await say("All answered.", "/quit")).not.toContain("[y]es");
  expect(await ended).toEqual([0, null]);
  const rules = (await (await fetch(`${url}/agents/assistant/permissions`)).json()) as { items: unknown[] };
  expect(rules.items).toHaveLength(1);
});

test("in a real terminal it has colours; Ctrl-C ends a run after its step, and a second one immediately", async () => {
  let steps = 0;
  const step = defineTool({
    name: "step",
    description: "The first one takes until the run is to end after it, the second one never ends.",
    parameters: z.object({}),
    async execute(_args, _call, run) {
      const isFirst = ++steps === 1;
      const isOver = () => run.signal.aborted || (isFirst && run.interruptRequested());
      await expect.poll(isOver).toBe(true);
      return "done";
    },
  });
  const script = () => ({ say: "A **bold** step.", call: [{ tool: "step" }] });
  const { url } = await startServer({ script, agents: AGENTS_WITH_STEP, tools: [step] });
  const { say, hear, press } = chatting(url, { colours: true });
  await say("> ", "go");
  await hear("A \x1b[1mbold\x1b[22m step.");
  await hear("\x1b[36m→ step");
  press("\x03");
  await hear("The run stopped after a step.");
  await say("> ", "go");
  await hear("→ step");
  press("\x03");
  await hear("Ctrl-C again to stop now");
  press("\x03");
  await hear("The run was stopped.");
});
