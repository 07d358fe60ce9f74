// A page with the LangGraph SDK's `useStream`, in Chromium, on another origin than the server.

import { describe, expect, onTestFinished } from "vitest";
import { test } from "../../support/chromium.ts";
import { cuttingProxy } from "../../support/cutting-proxy.ts";
import { heldAfter } from "../../support/gate.ts";
import { serving, skein } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { chatsIn, statusesOn, threadOf } from "./chats.ts";
import { keepsPromises, WORDS } from "./promises.ts";

const { open, serve, visit } = await chatsIn("langgraph.tsx");

describe("a page with useStream on another origin", () => {
  keepsPromises(test, open, {
    name: "langgraph",
    states: { called: "called", asking: "called", done: "success", denied: "error" },
    messages: 3,
  });

  test("shows the output of `npm start`: the demo's text, its tools, their results and its todos", async () => {
    const origin = await serve();
    const env = { PORT: "0", DATA_DIR: await temporaryFolder(), CORS_ORIGINS: origin };
    const { url } = await serving(skein(["serve"], env));
    const { tab, chat } = await visit(origin, url);
    await chat.say("Hello from a page.");
    await chat.reads("This was the scripted demo");
    await chat.is("ready");
    for (const text of ["You wrote: “Hello from a page.”", "their sum is 385"])
      await expect.poll(async () => (await chat.all()).join("\n")).toContain(text);
    const called = ["write_todos", "write_file", "read_file", "ls", "execute", "write_todos"];
    await expect
      .poll(() => tab.page.getByRole("heading").allInnerTexts())
      .toEqual(called.map((name) => `${name}: success`));
    await expect.poll(() => tab.page.getByRole("listitem").allInnerTexts()).toContain("Run it: completed");
    await tab.screenshot("langgraph-demo");
  });

  test("continues automatically if its connection breaks during an answer, without losses or repetitions", async () => {
    const { model, release } = heldAfter("word9", [{ say: WORDS }]);
    const { server, origin } = await open({ model });
    const proxy = await cuttingProxy(Number(new URL(server.url).port));
    onTestFinished(() => proxy.close());
    const { tab, chat } = await visit(origin, `http://127.0.0.1:${proxy.port}`);
    await chat.say("Tell me.");
    await chat.reads("word3");
    proxy.cutAll();
    release();
    await chat.reads("word59");
    await chat.is("ready");
    await expect.poll(() => chat.all()).toEqual(["Tell me.", WORDS]);
    await expect.poll(() => statusesOn(server, tab)).toEqual(["success"]);
    tab.allowErrors("net::ERR_");
  });

  test("replaces the last answer with another one", async () => {
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
    await expect.poll(() => chat.all()).toHaveLength(2);
  });
});
