// What every page on another origin than the server is promised, with any of the stock clients.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { heldAfter } from "../../support/gate.ts";
import type { Needing } from "../../support/needing.ts";
import { temporaryFolder } from "../../support/server.ts";
import { type Chats, LOCAL, statusesOn, threadOf } from "./chats.ts";

/** How a page shows a call of `execute`, in the words of its client. */
interface States {
  /** Until it is carried out. */
  readonly called: string;
  readonly asking: string;
  readonly done: string;
  readonly denied: string;
}

interface FrontEnd {
  /** Of its screenshots. */
  readonly name: string;
  readonly states: States;
  /** On the page, once a call was approved and the agent has answered: what was asked, and what came. */
  readonly messages: number;
}

export const WORDS = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");
export const SLOW = `- { say: "${WORDS}", delay_ms: 30 }`;
/** Minutes more than a test takes. */
export const AND_ON = "and on ".repeat(3_000).trim();

const ASKING = {
  agent: { ...LOCAL, permissions: { rules: [{ ask: "execute" }] } },
  script: `
- { say: May I?, call: [{ tool: execute, args: { command: "echo $((6 * 7))" } }] }
- { say: As you like. }`,
};

export function keepsPromises(test: Needing["test"], open: Chats["open"], page: FrontEnd): void {
  const { name, states, messages } = page;
  const isDone = new RegExp(`^Compute\\.[^]*execute: ${states.done}[^]*42[^]*As you like\\.`);

  /** A page whose agent waits for a person. */
  async function asked() {
    const opened = await open(ASKING);
    await opened.chat.say("Compute.");
    await opened.chat.reads(`execute: ${states.asking}`);
    await opened.chat.is("ready");
    return opened;
  }

  test("shows the answer while it is written", async () => {
    const dir = await temporaryFolder();
    const command = `until [ -e ${join(dir, "go")} ]; do sleep 0.05; done; echo there`;
    const turns = [{ say: "Waiting.", call: [{ tool: "execute", args: { command } }] }, { say: "Done." }];
    const { chat } = await open({ script: JSON.stringify(turns) });
    await chat.say("Wait for it.");
    await chat.reads("Waiting.");
    await chat.reads(`execute: ${states.called}`);
    await chat.is("streaming");
    await writeFile(join(dir, "go"), "");
    await chat.reads("Done.");
    await chat.is("ready");
    await expect.poll(async () => (await chat.all()).join("\n")).toContain(`execute: ${states.done}`);
  });

  test("runs a call that the person approves, and shows its result", async () => {
    const { server, tab, chat } = await asked();
    await tab.screenshot(`${name}-asking`);
    await chat.press("Approve");
    await chat.reads("As you like.");
    await chat.is("ready");
    await expect.poll(chat.all).toHaveLength(messages);
    await expect.poll(async () => (await chat.all()).join("\n")).toMatch(isDone);
    await expect.poll(async () => (await statusesOn(server, tab)).sort()).toEqual(["interrupted", "success"]);
    await tab.screenshot(`${name}-approved`);
  });

  test("does not run a call that the person denies, and the agent learns why", async () => {
    const { server, tab, chat } = await asked();
    await chat.press("Deny");
    await chat.reads("As you like.");
    await chat.is("ready");
    await expect.poll(async () => (await chat.all()).join("\n")).toContain(`execute: ${states.denied}`);
    const thread = await threadOf(server, tab);
    expect(thread.messages.find(({ role }) => role === "tool")?.error).toContain("Not on my machine.");
  });

  test("still asks after a reload, and accepts the answer", async () => {
    const { tab, chat } = await asked();
    await tab.page.reload();
    await chat.press("Approve");
    await chat.reads("As you like.");
    await chat.is("ready");
    await expect.poll(chat.all).toHaveLength(messages);
    await expect.poll(async () => (await chat.all()).join("\n")).toMatch(isDone);
  });

  test("shows the whole answer once after a reload during the answer", async () => {
    const { model, release } = heldAfter("word9", [{ say: WORDS }]);
    const { server, tab, chat } = await open({ model });
    await chat.say("Tell me.");
    await chat.reads("word3");
    await chat.is("streaming");
    await tab.page.reload();
    release();
    await chat.reads("word59");
    await chat.is("ready");
    await expect.poll(() => chat.all()).toEqual(["Tell me.", WORDS]);
    await expect.poll(() => statusesOn(server, tab)).toEqual(["success"]);
  });

  test("stops the run, and accepts the next message", async () => {
    const { server, tab, chat } = await open({
      script: `- { say: "{{user}} ${WORDS} ${AND_ON}", delay_ms: 100 }`,
    });
    await chat.say("First.");
    await chat.reads("First. word0");
    await chat.press("Stop");
    await chat.is("ready");
    await expect.poll(() => statusesOn(server, tab)).toEqual(["cancelled"]);
    await chat.say("Second.");
    await chat.reads("Second. word0");
  });

  test("explains in the provider's words why an answer ends", async () => {
    const fail = { code: "model_rejected", message: "The provider said no." };
    const { tab, chat } = await open({ script: JSON.stringify([{ say: "Half of", fail }]) });
    await chat.say("Go.");
    await expect.poll(() => chat.error()).toContain("The provider said no.");
    tab.allowErrors("The provider said no.");
  });

  test("can neither send nor read if the operator has not allowed its origin", async () => {
    const { server, tab, chat } = await open({ config: { cors: { origins: ["https://app.example"] } } });
    const isBlocked = tab.page.waitForEvent("console", (line) =>
      line.text().includes("blocked by CORS policy"),
    );
    await Promise.all([isBlocked, chat.say("Let me in.")]);
    await expect.poll(() => chat.error()).toContain("fetch");
    tab.allowErrors("blocked by CORS policy", "net::ERR_FAILED", "Failed to fetch");
    expect(await (await fetch(`${server.url}/threads`)).json()).toMatchObject({ items: [] });
  });
}
