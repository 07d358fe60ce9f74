// A page with the LangGraph SDK's `useStream`, in Chromium, on another origin than the server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished } from "vitest";
import { startChromium } from "../../support/chromium.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { needing } from "../../support/needing.ts";
import { serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { chatsIn, LOCAL, threadOf } from "./chats.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");
const { open, serve, visit } = await chatsIn(chromium, "langgraph.tsx");

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
const SLOW = `- { say: "${WORDS}", delay_ms: 30 }`;
const ASKING = { ...LOCAL, permissions: { rules: [{ ask: "execute" }] } };
const ASKED = `
- { say: May I?, call: [{ tool: execute, args: { command: "echo $((6 * 7))" } }] }
- { say: As you like. }`;

describe("a page with useStream on another origin", () => {
  test("shows what `npm start` serves: the demo's words, its tools, their results and its todos", async () => {
    const origin = await serve();
    const env = { PORT: "0", DATA_DIR: await temporaryFolder(), CORS_ORIGINS: origin };
    const { url } = await serving(skein(["serve"], env));
    const { tab, chat } = await visit(origin, url);
    await chat.say("Hello from a page.");
    await chat.reads("This was the scripted demo");
    await chat.is("ready");
    const all = (await chat.all()).join("\n");
    expect(all).toContain("You wrote: “Hello from a page.”");
    expect(all).toContain("their sum is 385");
    const called = ["write_todos", "write_file", "read_file", "ls", "execute", "write_todos"];
    expect(await tab.page.getByRole("heading").allInnerTexts()).toEqual(
      called.map((name) => `${name}: success`),
    );
    expect(await tab.page.getByRole("listitem").allInnerTexts()).toContain("Run it: completed");
    await tab.screenshot("langgraph-demo");
  });

  test("shows the answer while it is written", async () => {
    const dir = await temporaryFolder();
    const command = `until [ -e ${join(dir, "go")} ]; do sleep 0.05; done; echo there`;
    const turns = [{ say: "Waiting.", call: [{ tool: "execute", args: { command } }] }, { say: "Done." }];
    const { chat } = await open({ script: JSON.stringify(turns) });
    await chat.say("Wait for it.");
    await chat.reads("Waiting.");
    await chat.reads("execute: called");
    await chat.is("streaming");
    await writeFile(join(dir, "go"), "");
    await chat.reads("Done.");
    await chat.is("ready");
    expect((await chat.all()).join()).toContain("execute: success");
  });

  test("runs a call that the person approves, and shows its result", async () => {
    const { server, tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("May I?");
    await chat.press("Approve");
    await chat.reads("As you like.");
    await chat.is("ready");
    const [, asking = ""] = await chat.all();
    expect(asking).toMatch(/execute: success[\s\S]*42/);
    const { runs } = await threadOf(server, tab);
    expect(runs.map(({ status }) => status).sort()).toEqual(["interrupted", "success"]);
  });

  test("does not run a call that the person denies, and the agent reads why", async () => {
    const { server, tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.press("Deny");
    await chat.reads("As you like.");
    const { messages } = await threadOf(server, tab);
    expect(messages.find(({ role }) => role === "tool")?.error).toContain("Not on my machine.");
  });

  test("still asks when it is loaded again, and takes the answer", async () => {
    const { tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("May I?");
    await chat.is("ready");
    await tab.page.reload();
    await chat.press("Approve");
    await chat.reads("As you like.");
    await chat.is("ready");
    expect((await chat.all()).join("\n")).toMatch(
      /^Compute.[\s\S]*execute: success[\s\S]*42[\s\S]*As you like\.[\s\S]*$/,
    );
  });

  test("shows the whole answer once when it is loaded again in mid-answer", async () => {
    const { server, tab, chat } = await open({ script: SLOW });
    await chat.say("Tell me.");
    await chat.reads("word3");
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", expect.stringMatching(new RegExp(`^${WORDS}\\s+Again$`))]);
    expect((await threadOf(server, tab)).runs).toMatchObject([{ status: "success" }]);
  });

  test("continues by itself when its connection is cut in mid-answer: nothing is lost or doubled", async () => {
    const { server, origin } = await open({ script: SLOW });
    const proxy = await cuttingProxy(Number(new URL(server.url).port));
    onTestFinished(() => proxy.close());
    const { tab, chat } = await visit(origin, `http://127.0.0.1:${proxy.port}`);
    await chat.say("Tell me.");
    await chat.reads("word3");
    proxy.cutAll();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", expect.stringMatching(new RegExp(`^${WORDS}\\s+Again$`))]);
    expect((await threadOf(server, tab)).runs).toMatchObject([{ status: "success" }]);
    expect(tab.errors.splice(0)).toEqual([expect.stringContaining("net::ERR_")]);
  });

  test("stops the run, and takes the next message", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "{{user}} ${WORDS}", delay_ms: 100 }` });
    await chat.say("First.");
    await chat.reads("First. word0");
    await chat.press("Stop");
    const statuses = async () => (await threadOf(server, tab)).runs.map(({ status }) => status);
    await expect.poll(statuses).toEqual(["cancelled"]);
    await chat.say("Second.");
    await chat.reads("Second. word0");
  });

  test("shows another answer in place of the last one", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "Answered {{user}}" }` });
    await chat.say("Once.");
    await chat.reads("Answered Once.");
    await chat.is("ready");
    const before = (await threadOf(server, tab)).messages.at(-1);
    await chat.press("Again");
    await expect.poll(async () => (await threadOf(server, tab)).runs.length).toBe(2);
    await chat.is("ready");
    const { messages } = await threadOf(server, tab);
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(messages.at(-1)).not.toEqual(before);
    expect(await chat.all()).toHaveLength(2);
  });

  test("says in the provider's words why an answer ends", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { tab, chat } = await open({ script: JSON.stringify([{ say: "Half of", fail }]) });
    await chat.say("Go.");
    expect(await chat.error()).toContain("The provider said no.");
    expect(tab.errors.splice(0)).toEqual([expect.stringContaining("The provider said no.")]);
  });

  test("can neither send nor read where the operator has not allowed its origin", async () => {
    const { server, tab, chat } = await open({ config: { cors: { origins: ["https://app.example"] } } });
    await chat.say("Let me in.");
    expect(await chat.error()).toContain("fetch");
    expect(tab.errors.splice(0)).toContainEqual(expect.stringContaining("blocked by CORS policy"));
    expect(await (await fetch(`${server.url}/threads`)).json()).toMatchObject({ items: [] });
  });
});
