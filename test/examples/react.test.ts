// The example examples/react, in Chromium, on another origin than the server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { openTab, test } from "../support/chromium.ts";
import { bundle, servePage } from "../support/page-host.ts";
import { type Configured, serveWith } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";

const script = await bundle(new URL("../../examples/react/page.tsx", import.meta.url));

const LOCAL = { backend: { type: "local" } };

async function open(options: Configured) {
  const origin = await servePage(script);
  const server = await serveWith({ cors: { origins: [origin] } }, { agent: LOCAL, ...options });
  await createClient({ baseUrl: server.url }).threads.create({ id: "t1" });
  const tab = await openTab(`${origin}?server=${server.url}#t1`);
  const { page } = tab;
  return {
    ...{ tab, page, server },
    reads: (text: string) => page.getByText(text).first().waitFor(),
    is: (phase: string) => page.getByRole("status").getByText(phase, { exact: true }).waitFor(),
    press: (name: string) => page.getByRole("button", { name }).click(),
    say: async (text: string) => {
      await page.getByLabel("Message").fill(text);
      await page.getByLabel("Message").press("Enter");
    },
    messages: () => page.getByRole("article").allInnerTexts(),
  };
}

test("shows the answer while it is written, even after a reload, and each message once", async () => {
  const dir = await temporaryFolder();
  const command = `echo begun; until [ -e ${join(dir, "go")} ]; do sleep 0.05; done; echo there`;
  const todos = [{ id: "1", title: "Wait", status: "in_progress" }];
  const turns = [
    { say: "A plan.", call: [{ tool: "write_todos", args: { todos } }] },
    { say: "Waiting.", call: [{ tool: "execute", args: { command } }] },
    { say: "There it is." },
  ];
  const chat = await open({ script: JSON.stringify(turns) });
  await chat.is("idle");
  await chat.say("Wait for it.");
  await chat.reads("execute: open");
  await chat.reads("begun");
  await chat.reads("Wait: in_progress");
  await chat.is("executing_tool");
  await chat.tab.screenshot("example-react");
  await chat.page.reload();
  await chat.reads("execute: open");
  await chat.is("executing_tool");
  await writeFile(join(dir, "go"), "");
  await chat.reads("There it is.");
  await chat.is("idle");
  await expect.poll(chat.messages).toEqual(["Wait for it.", "A plan.", "Waiting.", "There it is."]);
});

test("asks the person and accepts the answer", async () => {
  const agent = { ...LOCAL, permissions: { rules: [{ ask: "execute" }] } };
  const turns = [
    { say: "May I?", call: [{ tool: "execute", args: { command: "echo $((6 * 7))" } }] },
    { say: "Thanks." },
  ];
  const chat = await open({ agent, script: JSON.stringify(turns) });
  await chat.say("Compute.");
  await chat.is("waiting_for_permission");
  await chat.press("Approve");
  await chat.reads("Thanks.");
  await chat.reads("execute: done");
  await chat.is("idle");
  await expect.poll(chat.messages).toEqual(["Compute.", "May I?", "Thanks."]);
});

test("steers and stops the run", async () => {
  const turns = [{ say: "Wait.", call: [{ tool: "execute", args: { command: "sleep 600" } }] }];
  const chat = await open({ script: JSON.stringify(turns) });
  await chat.say("Go.");
  await chat.is("executing_tool");
  // The run could be over before the message arrives.
  const isSteered = (answer: { url(): string; request(): { method(): string } }) =>
    answer.request().method() === "POST" && answer.url().endsWith("/messages");
  await Promise.all([chat.page.waitForResponse(isSteered), chat.say("Hurry.")]);
  await chat.press("Stop");
  await chat.reads("Stopped.");
  await chat.is("idle");
});
