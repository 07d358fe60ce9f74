import { globSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { familiar } from "../../examples/adapters/main.ts";
import { context } from "../../examples/hooks/context.ts";
import { effects } from "../../examples/hooks/effects.ts";
import { generation } from "../../examples/hooks/generation.ts";
import { deadline, guardrail, logged } from "../../examples/hooks/run-middleware.ts";
import { session } from "../../examples/hooks/session.ts";
import { toolUse } from "../../examples/hooks/tool-use.ts";
import { usage } from "../../examples/hooks/usage.ts";
import {
  conversation,
  defineTool,
  type Message,
  type ModelRequest,
  scriptedModel,
  textOf,
} from "../../src/index.ts";
import { play } from "../support/agent.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = new URL("../../examples/hooks/", import.meta.url);

const tool = (name: string, output: string, seen: unknown[] = []) =>
  defineTool({
    name,
    description: "For a test.",
    parameters: z.looseObject({}),
    execute(args) {
      seen.push(args);
      return output;
    },
  });

/** A model that keeps what it was asked. */
function listener(requests: ModelRequest[]) {
  return (request: ModelRequest) => {
    requests.push(request);
    return { say: `answer ${requests.length}` };
  };
}

test("a pre-generation hook can refuse a question, and the post-generation hook sees the refusal", async () => {
  const reports: string[] = [];
  const hook = () =>
    generation(
      (question) => !question.includes("secret"),
      (line) => reports.push(line),
    );

  const refused = await play({ hooks: [hook()], say: "Tell me a secret." });
  expect(refused.events.at(-1)).toMatchObject({ event: "error", data: { code: "run_aborted" } });
  const answered = await play({ hooks: [hook()], say: "Hello." });
  expect(answered.state.get("asked_by")).toBe("ada");
  expect(reports).toEqual(["error after 1 messages", "success after 2 messages"]);
});

test("a tool-use hook denies a call, rewrites another and hides a secret in its result", async () => {
  const seen: unknown[] = [];
  const { messages } = await play({
    hooks: [toolUse(new Set(["delete_all"]), "hunter2")],
    tools: [tool("delete_all", "gone"), tool("login", "the password is hunter2", seen)],
    script: [{ call: [{ tool: "delete_all" }, { tool: "login", args: { user: "ada" } }] }, { say: "Done." }],
  });
  const results = messages.filter((message) => message.role === "tool");
  expect(results[0]).toMatchObject({ name: "delete_all", error: "`delete_all` is not allowed here." });
  expect(results[1]).toMatchObject({ name: "login", content: "the password is [secret]" });
  expect(seen).toEqual([{ user: "ada", dry_run: true }]);
});

test("a deadline ends a run that takes too long, during a model call", async () => {
  const script = [{ say: "This takes long.", delay_ms: 60_000 }];
  const { events } = await play({ hooks: [deadline(20)], script });
  const end = { event: "error", data: { code: "run_aborted", message: "The run took longer than 20 ms." } };
  expect(events.at(-1)).toMatchObject(end);
});

test("a deadline ends a run that takes too long, during a tool call", async () => {
  const stuck = defineTool({
    name: "stuck",
    description: "Waits for its signal.",
    parameters: z.object({}),
    execute: (_args, _call, run) =>
      new Promise<string>((_, reject) =>
        run.signal.addEventListener("abort", () => reject(run.signal.reason), { once: true }),
      ),
  });
  const script = [{ call: [{ tool: "stuck" }] }, { say: "never said" }];
  const { events } = await play({ hooks: [deadline(20)], tools: [stuck], script });
  expect(events.at(-1)).toMatchObject({ event: "error", data: { code: "run_aborted" } });
});

test("a deadline that is not reached changes nothing", async () => {
  const { outcome } = await play({ hooks: [deadline(60_000)] });
  expect(outcome.status).toBe("success");
});

test("a logged run reports its start and end", async () => {
  const lines: string[] = [];
  await play({ hooks: [logged((line) => lines.push(line))] });
  expect(lines).toEqual([
    expect.stringMatching(/^run_\S+ begins$/),
    expect.stringMatching(/^run_\S+ ends with success after \d+ ms$/),
  ]);
});

test("a guardrail keeps a bad answer out of the thread", async () => {
  const hook = guardrail((answer) => (answer.includes("damn") ? "Mind your language." : undefined));
  const { events, messages } = await play({ hooks: [hook], script: [{ say: "damn" }] });
  expect(events.at(-1)).toMatchObject({ event: "error", data: { message: "Mind your language." } });
  expect(messages.map(({ role }) => role)).toEqual(["user"]);
});

test("effects shorten old tool output in the model's view, not in the thread", async () => {
  const requests: ModelRequest[] = [];
  const call = { id: "call_1", name: "read", args: {} };
  const long = "x".repeat(2000);
  const earlier = conversation().user("Read it.").assistant("", call).tool("call_1", "read", long);
  const { messages } = await play({
    hooks: [effects()],
    script: listener(requests),
    input: {
      messages: [
        ...earlier.messages,
        ...conversation().assistant("Long.").user("And?").assistant("So?").messages,
      ],
    },
  });
  const shown = requests[0]?.messages.find(({ role }) => role === "tool");
  expect(textOf(shown?.content ?? "")).toHaveLength(500);
  expect(messages.find(({ role }) => role === "tool")?.content).toHaveLength(2000);
});

test("effects end a run whose model repeats itself", async () => {
  const again = { say: "Once more.", call: [{ tool: "look" }] };
  const { events } = await play({
    hooks: [effects()],
    tools: [tool("look", "nothing")],
    script: [again, again],
  });
  expect(events.at(-1)).toMatchObject({ event: "error", data: { message: "The model repeats itself." } });
});

test("session hooks load a conversation from another place and save it there", async () => {
  const saved = new Map<string, readonly Message[]>();
  const hook = () =>
    session({
      load: async (id) => saved.get(id) ?? [],
      save: async (id, messages) => void saved.set(id, messages),
    });
  const requests: ModelRequest[] = [];
  const script = listener(requests);
  for (const say of ["one", "two"]) await play({ hooks: [hook()], script, say, input: { threadId: "s1" } });
  const texts = (messages: readonly Message[] = []) => messages.map(({ content }) => content);
  expect(texts(requests[1]?.messages)).toEqual(["one", "answer 1", "two"]);
  expect(texts(saved.get("s1"))).toEqual(["one", "answer 1", "two", "answer 2"]);
});

test("injected context is sent to the model and is not in the thread", async () => {
  const requests: ModelRequest[] = [];
  const { messages } = await play({ hooks: [context("project", "Use tabs.")], script: listener(requests) });
  expect(requests[0]?.system.map(({ text }) => text)).toEqual(["<project>\nUse tabs.\n</project>"]);
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
});

test("usage is logged for each model call and for the run", async () => {
  const lines: string[] = [];
  await play({
    hooks: [usage((line) => lines.push(line))],
    tools: [tool("look", "nothing")],
    script: [
      { call: [{ tool: "look" }], usage: { input_tokens: 10, output_tokens: 1 } },
      { say: "Done.", usage: { input_tokens: 20, output_tokens: 2 } },
    ],
  });
  expect(lines).toEqual(["scripted:test: 10 in, 1 out", "scripted:test: 20 in, 2 out", "run: 30 in, 3 out"]);
});

test("functions written for other frameworks are hooks of an agent", async () => {
  const lines: string[] = [];
  const write = (_details: object, message: string) => void lines.push(message);
  const requests: ModelRequest[] = [];
  const script = (request: ModelRequest) => {
    requests.push(request);
    const call = [{ tool: "delete_all" }, { tool: "look" }];
    return requests.length === 1 ? { call } : { say: "Done." };
  };
  const folder = await temporaryFolder();
  const logger = { info: write, error: write };
  const agent = familiar(scriptedModel(script), [tool("delete_all", "gone"), tool("look", " a tree ")], {
    folder,
    logger,
  });
  const handle = agent.run("Look.", { thread: "s1" });
  expect((await handle.result).text).toBe("Done.");
  await agent.close();
  expect(lines).toEqual(["run started", "run finished", "generation complete"]);
  expect(requests[0]?.messages.map(({ content }) => content)).toEqual(["The project uses tabs.", "Look."]);
  const [session] = globSync("*/s1.json", { cwd: folder });
  const { messages } = JSON.parse(await readFile(join(folder, session ?? ""), "utf8"));
  const results = messages.filter(({ role }: Message) => role === "tool");
  const byName = (name: string) => results.find((result: { name: string }) => result.name === name);
  expect(byName("delete_all")).toMatchObject({ error: "Not that one." });
  expect(byName("look")).toMatchObject({ content: "a tree" });
});

test("the guides on porting hooks show every one of these files unchanged", async () => {
  const pages = ["port-run-hooks.md", "port-call-hooks.md"].map((page) =>
    readFile(new URL(`../../docs/guides/${page}`, import.meta.url), "utf8"),
  );
  const shown = (await Promise.all(pages)).join();
  for (const file of await readdir(folder)) {
    const code = await readFile(new URL(file, folder), "utf8");
    expect(shown, file).toContain(`\`\`\`ts\n${code}\`\`\``);
  }
});
