import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { startServer } from "../support/server.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    tools: [ask_user]
    permissions: { rules: [{ ask: execute, message: May it run? }] }
`;

test("what a run asks is answered at the terminal, and it goes on", async () => {
  const question = {
    tool: "ask_user",
    args: { question: "Which colour?", kind: "select", options: ["red", "blue"] },
  };
  const script = [
    { call: [{ tool: "execute", args: { command: "echo it ran" } }] },
    { call: [{ tool: "execute", args: { command: "echo not this" } }, question] },
    { say: "All answered." },
  ];
  const { url } = await startServer({ script, agents: AGENTS });
  const child = spawn(process.execPath, [MAIN, "chat", "--url", url, "--thread", "t1"], {
    env: { PATH: process.env.PATH ?? "", NODE_NO_WARNINGS: "1", NO_COLOR: "1" },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  child.stdout.on("data", (chunk) => (text += String(chunk)));
  const say = async (cue: string, line: string) => {
    await expect.poll(() => text, { timeout: 10_000 }).toContain(cue);
    text = "";
    child.stdin.write(`${line}\n`);
  };
  await say("> ", "go");
  await say("May it run?", "y");
  await say("May it run?", "no, that is enough");
  await say("Which colour?", "2");
  await say("All answered.", "");
  expect(await once(child, "exit")).toEqual([0, null]);
  const { items } = (await (await fetch(`${url}/threads/t1/messages`)).json()) as {
    items: { role: string; content: string; error?: string }[];
  };
  const results = items.flatMap(({ role, content, error }) => (role === "tool" ? [error ?? content] : []));
  expect(results.toSorted()).toEqual(["blue", "it ran\n[exit_code: 0]", "that is enough"]);
});
