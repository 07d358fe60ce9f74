// The pages of this folder in a browser's tab, beside a server; what a person reads on them, and does. They look the same.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Model } from "../../../src/agent/core/model.ts";
import { openTab, type Tab } from "../../support/chromium.ts";
import { freePort } from "../../support/free-port.ts";
import { bundle, servePage } from "../../support/page-host.ts";
import { serveWith } from "../../support/process.ts";
import { startServer, temporaryFolder } from "../../support/server.ts";

export const LOCAL = { backend: { type: "local" } };

interface Opened {
  /** Of its model, unless there is one. */
  readonly script?: string;
  readonly model?: Model;
  /** More keys of its agent. */
  readonly agent?: object;
  /** More of server.yaml. */
  readonly config?: object;
}

export type Chats = Awaited<ReturnType<typeof chatsIn>>;

/** The page in `file`, in this browser, without which each test is skipped. */
export async function chatsIn(file: string) {
  const page = await bundle(new URL(file, import.meta.url));

  /** In a tab, at `origin`; it talks with the server at `url`. */
  async function visit(origin: string, url: string, settings = "") {
    const tab = await openTab(`${origin}?server=${url}${settings}`);
    return { tab, chat: chatOn(tab) };
  }

  /** In a tab, with a server of its own. */
  async function open({ config, agent = LOCAL, script = "- { say: ok }", model: own }: Opened = {}) {
    const origin = await servePage(page);
    const dir = await temporaryFolder();
    const model = `scripted:${join(dir, "script.yaml")}`;
    await writeFile(join(dir, "script.yaml"), script);
    const server = await startServer({
      ...(own ? { model: own } : { realModels: true }),
      ...{ dir, agents: JSON.stringify({ agents: { assistant: { model, ...agent } } }) },
      config: { store: "sqlite", cors: { origins: [origin] }, ...config },
    });
    return { server, origin, ...(await visit(origin, server.url)) };
  }

  /** The same, with a server that is a process, on a port that stays free while it is down. */
  async function openBesideProcess(script: string) {
    const origin = await servePage(page);
    const env = { PORT: String(await freePort()) };
    const server = await serveWith({ cors: { origins: [origin] } }, { agent: LOCAL, script, env });
    return { server, origin, ...(await visit(origin, server.url)) };
  }

  return { open, openBesideProcess, visit, serve: () => servePage(page) };
}

function chatOn({ page }: Tab) {
  const answer = page.getByRole("article", { name: "assistant" }).last();
  return {
    /** Resolves when the newest answer has the text. */
    reads: (text: string) => answer.getByText(text).first().waitFor(),
    is: (status: string) => page.getByRole("status").getByText(status, { exact: true }).waitFor(),
    error: () => page.getByRole("alert").innerText(),
    /** Every message, as it is on the page. */
    all: () => page.getByRole("article").allInnerTexts(),
    say: async (text: string) => {
      await page.getByLabel("Message").fill(text);
      await page.getByRole("button", { name: "Send" }).click();
    },
    press: (name: string) => page.getByRole("button", { name }).click(),
  };
}

interface Thread {
  readonly messages: readonly { role: string; content: string; error?: string }[];
  readonly runs: readonly { status: string }[];
}

/** The chat as the server has it; its id is in the hash of the page. */
export async function threadOf({ url }: { url: string }, { page }: Tab): Promise<Thread> {
  const thread = `${url}/threads/${new URL(page.url()).hash.slice(1)}`;
  const items = async (path: string) => ((await (await fetch(thread + path)).json()) as { items: [] }).items;
  return { messages: await items("/messages"), runs: await items("/runs") };
}

export const statusesOn = async (server: { url: string }, tab: Tab) =>
  (await threadOf(server, tab)).runs.map(({ status }) => status);
