import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type { Message } from "../../../src/agent/core/message.ts";
import type { RunRecord } from "../../../src/agent/core/records.ts";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { StreamEvent } from "../../../src/protocol/event.ts";
import { gate, gated, WITH_GATE } from "../../support/gate.ts";
import { threadsOf } from "../../support/native.ts";
import { NODE_ENV } from "../../support/node.ts";
import { MAIN } from "../../support/program.ts";
import { startServer } from "../../support/server.ts";
import { chatting, testAtTerminal } from "./terminal.ts";

/** `skein chat` with nothing at its stdin, or with `input` piped in. */
function sending(url: string, args: readonly string[], input?: string | Buffer) {
  const child = spawn(process.execPath, [MAIN, "chat", "--url", url, ...args], { env: NODE_ENV });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.end(input);
  return { child, stderr: text(child.stderr), ended: once(child, "exit") };
}

async function send(...args: Parameters<typeof sending>) {
  const { child, stderr, ended } = sending(...args);
  const stdout = await text(child.stdout);
  const [code] = await ended;
  return { stdout, stderr: await stderr, code };
}

const messagesOn = async (url: string, thread: string) =>
  ((await (await fetch(`${url}/threads/${thread}/messages`)).json()) as { items: Message[] }).items;

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  execute: () => "seen",
});

const WITH_LOOK = "agents: { assistant: { model: 'scripted:test', tools: [look] } }";
const ASKS = "agents: { assistant: { model: 'scripted:test', tools: [ask_user] } }";
const question = {
  tool: "ask_user",
  args: { question: "Which colour?", kind: "select", options: ["red", "blue"] },
};

test("a message on the command line is answered on stdout, with everything else on stderr", async () => {
  const script = [
    { think: "Hm.", say: "I look first.", call: [{ tool: "look" }] },
    { think: "So.", say: "It is **there**.\n\nIn two lines." },
  ];
  const { url } = await startServer({ script, agents: WITH_LOOK, tools: [look] });
  const { stdout, stderr, code } = await send(url, ["--thread", "t1", "Where is it?"]);
  expect({ stdout, code }).toEqual({ stdout: "It is **there**.\n\nIn two lines.\n", code: 0 });
  for (const aside of ["Hm.", "I look first.", "→ look", "✓ look"]) expect(stderr).toContain(aside);
  expect((await messagesOn(url, "t1"))[0]).toMatchObject({ role: "user", content: "Where is it?" });
});

test("piped input is the message, or is appended to the one on the command line", async () => {
  const { url } = await startServer({ script: [{ say: "{{user}}" }, { say: "{{user}}" }] });
  const alone = await send(url, [], "one\ntwo\n");
  expect(alone).toMatchObject({ stdout: "one\ntwo\n", code: 0 });
  const appended = await send(url, ["Sum this up:"], "one\ntwo\n");
  expect(appended).toMatchObject({ stdout: "Sum this up:\n\none\ntwo\n", code: 0 });
});

test("each kind of end has its exit code", async () => {
  const fail = { code: "model_rejected", message: "No\u001b[8m." };
  const script = [{ say: "Half an answer.", fail }, { call: [question] }];
  const { url } = await startServer({ script, agents: ASKS });

  const failed = await send(url, ["go"]);
  expect(failed).toMatchObject({ stdout: "", code: 1 });
  expect(failed.stderr).toContain("No\\u{1b}[8m. (model_rejected)");

  const waiting = await send(url, ["--thread", "t3", "go"]);
  expect(waiting).toMatchObject({ stdout: "", code: 3 });
  expect(waiting.stderr).toContain("? Which colour?");
  expect(waiting.stderr).toContain("skein chat --thread t3");

  expect(await send(url, ["--agent", "none", "go"])).toMatchObject({ stdout: "", code: 2 });
  expect(await send("http://127.0.0.1:1", ["go"])).toMatchObject({ stdout: "", code: 1 });
});

test("invalid options start no run", async () => {
  const { url } = await startServer();
  for (const [args, input, told] of [
    [[], undefined, "The message is empty."],
    [[], " \n", "The message is empty."],
    [["two", "words"], undefined, "put the message in quotes"],
    [[], Buffer.from([0xff, 0xfe]), "not UTF-8 text"],
  ] as const) {
    const { stdout, stderr, code } = await send(url, args, input);
    expect({ stdout, code }).toEqual({ stdout: "", code: 2 });
    expect(stderr).toContain(told);
  }
  expect(await (await fetch(`${url}/threads`)).json()).toMatchObject({ items: [] });
});

test("Ctrl-C, which npm passes on a second time, cancels the run and exits with 130", async () => {
  const { tool, entered } = gate();
  const { url } = await startServer({ script: gated, agents: WITH_GATE, tools: [tool] });
  const { child, ended } = sending(url, ["--thread", "t1", "go"]);
  await entered;
  child.kill("SIGINT");
  await once(child.stderr, "data");
  child.kill("SIGINT");
  expect(await ended).toEqual([130, null]);
  const { items } = (await (await fetch(`${url}/threads/t1/runs`)).json()) as { items: RunRecord[] };
  expect(items).toMatchObject([{ status: "cancelled" }]);
});

test("--json prints one event per line, in which no character can control a terminal", async () => {
  const hostile = "\u009b2J\u202e\u{e0041}";
  const { url } = await startServer({ script: [{ say: `Red${hostile}` }] });
  const { stdout, stderr, code } = await send(url, ["--json", "go"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(stdout).not.toMatch(/[^\P{C}\n]/u);
  const events = stdout
    .trimEnd()
    .split("\n")
    .map((line) => StreamEvent.parse(JSON.parse(line)));
  expect(events[0]?.event).toBe("run_start");
  expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
  const deltas = events.flatMap(({ event, data }) => (event === "on_chat_model_stream" ? [data] : []));
  expect(deltas.map((data) => ("delta" in data ? data.delta : "")).join("")).toBe(`Red${hostile}`);
});

test("--temporary leaves no thread behind, and names the one whose question is open", async () => {
  const script = [{ say: "Red." }, { say: "Hm.", call: [question] }];
  const config = { retention: { temporary_threads: "0.2s" } };
  const { url } = await startServer({ script, agents: ASKS, config });
  const ids = async () => (await threadsOf(url)).map(({ id }) => id);
  expect(await send(url, ["--temporary", "go"])).toMatchObject({ stdout: "Red.\n", code: 0 });
  await expect.poll(ids).toEqual([]);
  const { stderr, code } = await send(url, ["--temporary", "go"]);
  expect(code).toBe(3);
  expect(stderr).toContain(`--thread ${(await ids())[0]}`);
  expect(await send(url, ["--temporary", "--thread", "t1", "go"])).toMatchObject({ code: 2 });
});

test("an answer that no one reads to its end is not reported as a failure", async () => {
  const { url } = await startServer({ script: [{ say: "word ".repeat(50_000) }] });
  const { child, stderr, ended } = sending(url, ["--json", "go"]);
  await once(child.stdout, "data");
  child.stdout.destroy();
  expect(await stderr).toBe("");
  await ended;
});

testAtTerminal(
  "in a terminal, the questions of a single message are asked, and the answer is streamed",
  async () => {
    const script = [{ say: "Let me ask.", call: [question] }, { say: "Then it is red." }];
    const { url } = await startServer({ script, agents: ASKS });
    const { say, hear, ended } = chatting(url, { args: ["go"] });
    const shown = await say("? Which colour?", "1");
    expect(shown).toContain("Let me ask.");
    await hear("Then it is red.");
    expect(await ended).toEqual([0, null]);
  },
);
