// A page with the AI SDK's `useChat`, in Chromium, on another origin than the server.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect } from "vitest";
import { createApiKeys, issueApiKey } from "../../../src/http/auth/api-keys.ts";
import { openSqliteKeyFile } from "../../../src/stores/sqlite/key-file.ts";
import { startChromium } from "../../support/chromium.ts";
import { needing } from "../../support/needing.ts";
import { serveWith } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";
import { chatsIn, LOCAL, threadOf } from "./chats.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");
const { open, visit } = await chatsIn(chromium, "ai-sdk.tsx");

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
const ASKING = { ...LOCAL, permissions: { rules: [{ ask: "execute" }] } };
const ASKED = `
- { say: May I?, call: [{ tool: execute, args: { command: "echo $((6 * 7))" } }] }
- { say: As you like. }`;

describe("a page with useChat on another origin", () => {
  test("shows the answer while it is written", async () => {
    const dir = await temporaryFolder();
    const command = `until [ -e ${join(dir, "go")} ]; do sleep 0.05; done; echo there`;
    const turns = [{ say: "Waiting.", call: [{ tool: "execute", args: { command } }] }, { say: "Done." }];
    const { chat } = await open({ script: JSON.stringify(turns) });
    await chat.say("Wait for it.");
    await chat.reads("Waiting.");
    await chat.reads("execute: input-available");
    await chat.is("streaming");
    await writeFile(join(dir, "go"), "");
    await chat.reads("execute: output-available");
    await chat.reads("Done.");
    await chat.is("ready");
  });

  test("runs a call that the person approves, and shows its result in the same answer", async () => {
    const { server, tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("execute: approval-requested");
    await tab.screenshot("ai-sdk-approval");
    await chat.press("Approve");
    await chat.reads("42");
    await chat.reads("As you like.");
    await chat.is("ready");
    expect(await chat.all()).toHaveLength(2);
    const { runs } = await threadOf(server, tab);
    expect(runs.map(({ status }) => status).sort()).toEqual(["interrupted", "success"]);
  });

  test("does not run a call that the person denies, and the agent reads why", async () => {
    const { server, tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.press("Deny");
    await chat.reads("execute: output-denied");
    await chat.reads("As you like.");
    const { messages } = await threadOf(server, tab);
    expect(messages.find(({ role }) => role === "tool")?.error).toContain("Not on my machine.");
  });

  test("still asks when it is loaded again, and takes the answer", async () => {
    const { tab, chat } = await open({ agent: ASKING, script: ASKED });
    await chat.say("Compute.");
    await chat.reads("execute: approval-requested");
    await tab.page.reload();
    await chat.press("Approve");
    await chat.reads("42");
    await chat.reads("As you like.");
    expect(await chat.all()).toHaveLength(2);
  });

  test("shows the whole answer once when it is loaded again in mid-answer", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "${WORDS}", delay_ms: 30 }` });
    await chat.say("Tell me.");
    await chat.reads("word3");
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", WORDS]);
    expect((await threadOf(server, tab)).runs).toMatchObject([{ status: "success" }]);
  });

  test("shows the whole answer once when it ends while the page is loaded again", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "${WORDS}", delay_ms: 30 }` });
    await chat.say("Tell me.");
    await chat.reads("word3");
    const stateOf = async () => (await threadOf(server, tab)).runs.map(({ status }) => status);
    await tab.page.route("**/stream", async (route) => {
      await expect.poll(stateOf).toEqual(["success"]);
      await route.continue();
    });
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", WORDS]);
  });

  test("stops the run, and takes the next message", async () => {
    const { server, tab, chat } = await open({ script: `- { say: "{{user}} ${WORDS}", delay_ms: 100 }` });
    await chat.say("First.");
    await chat.reads("First. word0");
    await chat.press("Stop");
    await chat.is("ready");
    const stateOf = async () => (await threadOf(server, tab)).runs.map(({ status }) => status);
    await expect.poll(stateOf).toEqual(["cancelled"]);
    await chat.say("Second.");
    await chat.reads("Second. word0");
  });

  test("says in the provider's words why an answer ends", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { chat } = await open({ script: JSON.stringify([{ say: "Half of", fail }]) });
    await chat.say("Go.");
    expect(await chat.error()).toContain("The provider said no.");
    await chat.reads("Half of");
  });

  test("is in error when the server dies in mid-answer, and has the whole answer once it is there again", async () => {
    const { server, origin, tab, chat } = await open({ script: `- { say: "${WORDS}", delay_ms: 30 }` });
    await chat.say("Tell me.");
    await chat.reads("word3");
    server.child.kill("SIGKILL");
    await chat.is("error");
    expect(tab.errors.splice(0)).toEqual([expect.stringContaining("net::ERR_")]);
    await serveWith(
      { cors: { origins: [origin] } },
      {
        dir: server.dir,
        script: `- { say: "${WORDS}" }`,
        agent: LOCAL,
        env: { PORT: new URL(server.url).port },
      },
    );
    await tab.page.reload();
    await chat.reads("word59");
    await chat.is("ready");
    expect(await chat.all()).toEqual(["Tell me.", WORDS]);
  });

  test("talks with a key of its user, and not without one", async () => {
    const config = { store: "sqlite", auth: { scheme: "api_key" }, backends: { allow_local: true } };
    const { server, origin, tab, chat } = await open({ config });
    await chat.say("Let me in.");
    expect(await chat.error()).toContain("Authorization");
    expect(tab.errors.splice(0)).toEqual([expect.stringContaining("401")]);
    const { documents, close } = openSqliteKeyFile(join(server.dir, "data"));
    const keys = createApiKeys(documents);
    const ada = await issueApiKey(keys, { tenant: "acme", user: "ada", scopes: ["read", "run"], name: "" });
    close();
    const { chat: again } = await visit(origin, server.url, `&key=${ada.key}`);
    await again.say("Let me in.");
    await again.reads("ok");
  });

  test("can neither send nor read where the operator has not allowed its origin", async () => {
    const { server, tab, chat } = await open({ config: { cors: { origins: ["https://app.example"] } } });
    await chat.say("Let me in.");
    await chat.is("error");
    expect(tab.errors.splice(0)).toContainEqual(expect.stringContaining("blocked by CORS policy"));
    expect(await (await fetch(`${server.url}/threads`)).json()).toMatchObject({ items: [] });
  });
});
