// A page with AG-UI's `HttpAgent`, in Chromium, on another origin than the server.

import { afterAll, describe, expect } from "vitest";
import { startChromium } from "../../support/chromium.ts";
import { needing } from "../../support/needing.ts";
import { chatsIn, LOCAL, threadOf } from "./chats.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");
const { open } = await chatsIn(chromium, "ag-ui.tsx");

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
const ASKING = { ...LOCAL, permissions: { rules: [{ ask: "execute" }] } };
const ASKED = `
- { say: May I?, call: [{ tool: execute, args: { command: "echo $((6 * 7))" } }] }
- { say: As you like. }`;

describe("a page with HttpAgent on another origin", () => {
  test("runs a call that the person approves, and shows its result", async () => {
    const { tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("May I?");
    await chat.press("Approve");
    await chat.reads("As you like.");
    await chat.is("ready");
    expect((await chat.all())[1]).toMatch(/execute: done[\s\S]*42/);
    await tab.screenshot("ag-ui-approved");
  });

  test("still asks when it is loaded again; what is denied does not run, and the agent reads why", async () => {
    const { server, tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("May I?");
    await chat.is("ready");
    await tab.page.reload();
    await chat.press("Deny");
    await chat.reads("As you like.");
    const { messages } = await threadOf(server, tab);
    expect(messages.find(({ role }) => role === "tool")?.error).toContain("Not on my machine.");
  });

  test("shows the whole answer once when it is loaded again in mid-answer", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "${WORDS}", delay_ms: 30 }` });
    await chat.say("Tell me.");
    await chat.reads("word3");
    await chat.is("streaming");
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", WORDS]);
    expect((await threadOf(server, tab)).runs).toMatchObject([{ status: "success" }]);
  });

  test("stops the run, and takes the next message", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "{{user}} ${WORDS}", delay_ms: 100 }` });
    await chat.say("First.");
    await chat.reads("First. word0");
    await chat.press("Stop");
    await chat.is("ready");
    const statuses = async () => (await threadOf(server, tab)).runs.map(({ status }) => status);
    await expect.poll(statuses).toEqual(["cancelled"]);
    await chat.say("Second.");
    await chat.reads("Second. word0");
  });

  test("says in the provider's words why an answer ends", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { chat } = await open({ script: JSON.stringify([{ say: "Half of", fail }]) });
    await chat.say("Go.");
    expect(await chat.error()).toContain("The provider said no.");
  });

  test("can neither send nor read where the operator has not allowed its origin", async () => {
    const { server, tab, chat } = await open({ config: { cors: { origins: ["https://app.example"] } } });
    await chat.say("Let me in.");
    expect(await chat.error()).toContain("fetch");
    expect(tab.errors.splice(0)).toContainEqual(expect.stringContaining("blocked by CORS policy"));
    expect(await (await fetch(`${server.url}/threads`)).json()).toMatchObject({ items: [] });
  });
});
