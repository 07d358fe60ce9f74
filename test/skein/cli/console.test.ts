import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../../../src/agent/core/tool.ts";
import { runAtConsole } from "../../../src/skein/cli/console.ts";
import { agentWith, runtimeWith } from "../../support/library.ts";

/** A terminal of which a test is the user. */
function terminal() {
  const input = new PassThrough();
  const output = new PassThrough();
  let text = "";
  output.on("data", (chunk) => (text += String(chunk)));
  return {
    streams: { input, output },
    async say(cue: string, line: string) {
      await expect.poll(() => text).toContain(cue);
      text = "";
      input.write(`${line}\n`);
    },
  };
}

const wipe = defineTool({
  name: "wipe",
  description: "Wipes a disk.",
  parameters: z.object({}),
  execute: () => "wiped",
});

test("a console shows an agent's text, sends typed text, and asks its questions", async () => {
  const script = [
    { say: "What shall I do?" },
    { say: "I wipe it.", call: [{ tool: "wipe" }] },
    { say: "It is clean." },
  ];
  const agent = agentWith(script, { tools: [wipe], permissions: { mode: "default" } });
  const handle = runtimeWith().spawn(agent, { input: "hello" });
  const { streams, say } = terminal();
  const talk = runAtConsole(handle, streams);
  await say("What shall I do?\n\n> ", "wipe it");
  await say("and why", "y");
  await say("It is clean.\n\n> ", "");
  await talk;
  expect((await handle.history()).find(({ role }) => role === "tool")).toMatchObject({ content: "wiped" });
});

test("a console exits when its input ends", async () => {
  const { streams } = terminal();
  const talk = runAtConsole(runtimeWith().spawn(agentWith([])), streams);
  streams.input.end();
  await talk;
});
