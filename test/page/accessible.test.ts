import type { Page } from "playwright-core";
import { afterAll, describe, expect } from "vitest";
import { startChromium, type Tab } from "../support/chromium.ts";
import { needing } from "../support/needing.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");

const AGENTS = `
agents:
  assistant:
    model: "scripted:test"
    description: Works in a folder of its own
    backend: { type: local }
    permissions: { rules: [{ ask: execute }, { allow: "write_*" }, { allow: "read_*" }, { allow: ls }, { allow: browse }] }
`;

/** A thread with each kind of cell, one that waits for an answer, and one that failed. */
async function furnished() {
  const { url } = await startServer({
    agents: AGENTS,
    script: (request) => {
      const asked = JSON.stringify(request.messages.findLast(({ role }) => role === "user"));
      const step =
        request.messages.length - 1 - request.messages.findLastIndex(({ role }) => role === "user");
      if (asked.includes("Ask"))
        return { say: "May I?", call: [{ tool: "execute", args: { command: "ls -la" } }] };
      if (asked.includes("Fail")) return { say: "Well", fail: { code: "model_rejected", message: "No." } };
      if (step > 0)
        return {
          say: "# Done\n\n- one\n- [two](https://example.com)\n\n```ts\nconst a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        };
      return {
        think: "What is to be done?",
        say: "First the plan.",
        usage: { input_tokens: 1000, cache_read_tokens: 500 },
        call: [
          { tool: "write_todos", args: { todos: [{ id: "1", title: "Begin", status: "in_progress" }] } },
          { tool: "write_file", args: { path: "notes/a.md", content: "# A\n" } },
          { tool: "read_file", args: { path: "nowhere.txt" } },
        ],
      };
    },
  });
  const run = await runs(url, "full", {
    input: "Do it, with everything that belongs to it, however long it takes.",
  });
  await runs(url, "asks", { input: "Ask me." });
  await runs(url, "fails", { input: "Fail." });
  return { url, run };
}

/** Where each is, and what it shows when it has been drawn. */
const VIEWS: Readonly<Record<string, readonly [hash: string, text: string | RegExp]>> = {
  "a new conversation": ["#/", "New conversation"],
  "a conversation": ["#/t/full", "Done"],
  "a conversation that waits": ["#/t/asks", "ls -la"],
  "a conversation that failed": ["#/t/fails", "No."],
  "the questions of a conversation": ["#/t/asks/questions", "ls -la"],
  "the todos of a conversation": ["#/t/full/todos", "Begin"],
  "the files of a conversation": ["#/t/full/files", "notes"],
  "the trace of a conversation": ["#/t/full/trace", "read_file"],
  "the events of a conversation": ["#/t/full/events", "run_start"],
  "the trace of a run": ["#/t/full/r/RUN/trace", "read_file"],
  "the events of a run": ["#/t/full/r/RUN/events", "run_start"],
  "an address that the page does not have": ["#/nowhere", "There is no such page"],
  "the inbox": ["#/inbox", "ls -la"],
  "the runs": ["#/runs", "Failed"],
  "the usage": ["#/usage", "scripted:test"],
  "the agents": ["#/agents", "Works in a folder of its own"],
  "an agent": ["#/agents/assistant", "Works in a folder of its own"],
  "the users of the server": ["#/admin", "Delete"],
  "the runs of all users": ["#/admin/runs", "Failed"],
  "what waits for all users": ["#/admin/waiting", "execute"],
  "the keys of a server without keys": ["#/admin/keys", "no API keys"],
  "the usage of all tenants": ["#/admin/usage", "Model calls"],
  "the tools": ["#/tools", "Tools"],
  "the settings": ["#/settings", "Settings"],
};

const LOOKS = (["light", "dark"] as const).flatMap((theme) =>
  [1280, 390].map((width) => ({ theme, width, height: 800 })),
);

/** Looks at what is seen now, in each way. */
async function hasNoBarriers(tab: Tab, name: string): Promise<void> {
  for (const look of LOOKS) {
    await tab.look(look);
    await tab.screenshot(["page", ...name.split(" "), look.theme, look.width].join("-"));
    expect({ look, barriers: await tab.barriers() }).toEqual({ look, barriers: [] });
    expect(await tab.page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
  }
}

/** What opens over or in a view: where, what it shows, and how it is opened on a narrow screen. */
const OPENED: Readonly<
  Record<string, readonly [hash: string, text: string, open: (page: Page) => Promise<void>, shown: string]>
> = {
  "the list of keys": ["#/", "New conversation", openKeys, "Single letters"],
  "the details of a model call": [
    "#/t/full/r/RUN/trace",
    "read_file",
    (page) =>
      page
        .getByRole("button", { name: /^Model call/ })
        .first()
        .click(),
    "First token after",
  ],
  "the JSON of an event": [
    "#/t/full/r/RUN/events",
    "run_start",
    (page) => page.locator("summary").first().click(),
    '"attempt": 1',
  ],
  "a file": ["#/t/full/files", "notes/", openFile, "# A"],
  "the reply to a question": [
    "#/inbox",
    "ls -la",
    (page) => page.getByRole("button", { name: "Deny, because…" }).click(),
    "Why not?",
  ],
  "the edit of a call": [
    "#/inbox",
    "ls -la",
    (page) => page.getByRole("button", { name: "Edit…" }).click(),
    "Run it like this",
  ],
};

/** The field has the focus at first, and takes letters as text. */
async function openKeys(page: Page): Promise<void> {
  await page.getByRole("heading", { name: "New conversation" }).click();
  await page.keyboard.press("?");
}

async function openFile(page: Page): Promise<void> {
  await page.getByText("notes/", { exact: true }).filter({ visible: true }).first().click();
  await page.getByText("a.md", { exact: true }).filter({ visible: true }).first().click();
}

describe("has no barrier for people who use a screen reader or need contrast, wide and narrow, light and dark:", () => {
  for (const [view, [hash, text]] of Object.entries(VIEWS))
    test(view, async () => {
      const { url, run } = await furnished();
      const tab = await seen(chromium, url);
      await tab.go(hash.replace("RUN", run), text);
      await hasNoBarriers(tab, view);
    });

  for (const [name, [hash, text, open, shown]] of Object.entries(OPENED))
    test(name, async () => {
      const { url, run } = await furnished();
      const tab = await seen(chromium, url);
      await tab.go(hash.replace("RUN", run), text);
      await open(tab.page);
      await tab.page.getByText(shown).filter({ visible: true }).first().waitFor();
      await hasNoBarriers(tab, name);
    });

  test("the drawers of a narrow screen", async () => {
    const { url } = await furnished();
    const tab = await seen(chromium, url);
    await tab.go("#/t/full", "Done");
    for (const theme of ["light", "dark"] as const)
      for (const drawer of ["Threads and pages", "Details"]) {
        await tab.look({ theme, width: 390, height: 800 });
        await tab.page.getByRole("button", { name: drawer, exact: true }).click();
        await tab.screenshot(`page-drawer-${drawer.split(" ")[0]}-${theme}`);
        expect([drawer, await tab.barriers()]).toEqual([drawer, []]);
        await tab.page.keyboard.press("Escape");
      }
  });

  test("the form for a key", async () => {
    const { url } = await startServer({ config: { auth: { scheme: "api_key" } } });
    const tab = await seen(chromium, url);
    await tab.page.getByRole("button", { name: "Sign in" }).waitFor();
    await hasNoBarriers(tab, "the form for a key");
    expect(tab.errors.splice(0).join()).toContain("401");
  });
});
