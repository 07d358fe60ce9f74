// Approvals, questions and the list of threads, as a person meets them in a browser.

import { describe, expect } from "vitest";
import type { Turn } from "../../src/agent/models/scripted.ts";
import { openTab, test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";

const AGENTS = `
agents:
  assistant:
    model: scripted:test
    backend: { type: local }
    permissions: { mode: default }
    tools: [ask_user]
`;
const LONG = `echo ok\n${"# a line\n".repeat(200)}echo $((6 * 7)) > end.txt`;
const execute = (command: string) => ({ tool: "execute", args: { command } });

async function asked(script: readonly Turn[], thread = "t") {
  const { url } = await startServer({ agents: AGENTS, script });
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(answer.ok).toBe(true);
    return answer.json();
  };
  await post(`/threads/${thread}/runs`, { input: "Go", background: true });
  const tab = await openTab(`${url}/#/inbox`);
  const card = (name: string) => tab.page.locator("article.question", { hasText: name });
  const messages = async () =>
    JSON.stringify(await (await fetch(`${url}/threads/${thread}/messages`)).json());
  return { ...tab, url, post, card, messages, thread };
}

test("the tabs next to a conversation are all visible while it has todos and questions", async () => {
  const todos = ["a", "b"].map((id) => ({ id, title: id, status: "pending" }));
  const call = [{ tool: "write_todos", args: { todos } }, execute("echo one"), execute("echo two")];
  const { page, url, thread } = await asked([{ call }]);
  await page.goto(`${url}/#/t/${thread}`);
  for (const tab of ["Todos 0/2", "Questions 2"]) await page.getByRole("tab", { name: tab }).waitFor();
  const tabs = `document.querySelector(".details > .tabs")`;
  await expect.poll(() => page.evaluate(`${tabs}.scrollWidth - ${tabs}.clientWidth`)).toBe(0);
});

describe("a call that needs an approval", () => {
  test("can be allowed once its end was visible, and runs", async () => {
    const { page, card, messages } = await asked([{ call: [execute(LONG)] }, { say: "It ran." }]);
    const allow = card("execute").getByRole("button", { name: "Allow" });
    await allow.waitFor();
    await expect.poll(() => allow.isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Show the end" }).click();
    await allow.click();
    await page.getByText("Nothing needs your attention.").waitFor();
    await expect.poll(messages).toContain("It ran.");
    await expect.poll(() => page.title()).toBe("Inbox · Skein");
  });

  test("offers more only if its box does not show everything", async () => {
    const calls = Array.from({ length: 6 }, (_, at) => execute(`echo ${at}`));
    const { page, url, thread } = await asked([{ call: [...calls, execute(LONG)] }]);
    await page.setViewportSize({ width: 390, height: 500 });
    await page.goto(`${url}/#/t/${thread}`);
    await page.locator(".question").nth(6).waitFor();
    await page.getByRole("button", { name: "Show the end" }).waitFor();
    await expect.poll(() => page.getByText("There is more to read.").count()).toBe(1);
  });

  test("shows hidden parts", async () => {
    const { card } = await asked([
      { call: [execute(`ls${" ".repeat(500)}\u202e; rm -rf /`)] },
      { say: "ok" },
    ]);
    await card("execute").getByText("ls⟨500 blanks⟩⟨U+202E⟩; rm -rf /").waitFor();
  });

  test("can be denied with a reason that survives a reload and reaches the agent", async () => {
    const { page, card, messages } = await asked([{ call: [execute("rm -rf /")] }, { say: "I see." }]);
    await card("execute").getByRole("button", { name: "Deny, because…" }).click();
    await page.keyboard.type("Use the trash.");
    await page.reload();
    await expect.poll(() => card("execute").getByRole("textbox").inputValue()).toBe("Use the trash.");
    await card("execute").getByRole("button", { name: "Deny", exact: true }).click();
    await expect.poll(messages).toContain("Use the trash.");
  });

  test("runs with its edited arguments; invalid JSON is not sent", async () => {
    const call = { tool: "execute", args: { command: "echo wrong", timeout: 5 } };
    const { card, messages } = await asked([{ call: [call] }, { say: "Done." }]);
    await card("execute").getByRole("button", { name: "Edit…" }).click();
    await card("execute").getByRole("textbox", { name: "timeout" }).fill("5s");
    await card("execute").getByText("This is not JSON").waitFor();
    await expect
      .poll(() => card("execute").getByRole("button", { name: "Run it like this" }).isDisabled())
      .toBe(true);
    await card("execute").getByRole("textbox", { name: "timeout" }).fill("6");
    await card("execute").getByRole("textbox", { name: "command" }).fill("echo right");
    await card("execute").getByRole("button", { name: "Run it like this" }).click();
    await expect.poll(messages).toContain("right");
  });

  test("that was answered elsewhere disappears with a note on the page", async () => {
    const { page, card, post, url, thread } = await asked([{ call: [execute("ls")] }, { say: "ok" }]);
    await card("execute").waitFor();
    const open = (await (await fetch(`${url}/interrupts`)).json()) as {
      items: { id: string; run_id: string }[];
    };
    const answers = [{ id: open.items[0]?.id, decision: "deny" }];
    await post(`/threads/${thread}/runs/${open.items[0]?.run_id}/resume`, { answers, background: true });
    await page.getByText("A question was answered elsewhere").waitFor();
  });
});

test("several questions of a run are answered together, and later means neither yes nor no", async () => {
  const ask = (question: string, more: object) => ({ tool: "ask_user", args: { question, ...more } });
  const { page, card, messages } = await asked([
    {
      call: [
        ask("Which colour?", { kind: "select", options: ["red", "green"] }),
        ask("Which fruits?", { kind: "multi_select", options: ["apple", "pear", "plum"] }),
        ask("Whose name?", {}),
      ],
    },
    { say: "Thanks." },
  ]);
  await card("Which colour?").getByRole("button", { name: "green" }).click();
  await card("Which fruits?").getByLabel("apple").check();
  await card("Which fruits?").getByLabel("plum").check();
  await card("Which fruits?").getByRole("button", { name: "Answer", exact: true }).first().click();
  await card("Whose name?").getByRole("button", { name: "Later" }).click();
  await page.getByText("2 of 3 answered.").waitFor();
  await expect.poll(() => page.title()).toBe("? Inbox · Skein");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await card("Whose name?").getByRole("textbox").fill("Ada's");
  await card("Whose name?").getByRole("textbox").press("Enter");
  await expect.poll(messages).toContain("Thanks.");
  for (const answer of ["green", "apple, plum", "Ada's"])
    await expect.poll(() => messages()).toContain(answer);
});

test("tabs share one stream of changes, and another tab takes over when the first is closed", async () => {
  const { page, post } = await asked([{ say: "ok" }]);
  // By then it is the first that asks for the stream.
  await page.getByRole("region", { name: "Today" }).waitFor();
  const other = await page.context().newPage();
  const streams: string[] = [];
  other.on("request", (request) => {
    if (request.url().endsWith("/events")) streams.push(request.url());
  });
  await other.goto(page.url());
  await other.getByRole("region", { name: "Today" }).waitFor();
  await post("/threads", { id: "made-elsewhere", title: "Made elsewhere" });
  for (const tab of [page, other]) await tab.getByText("Made elsewhere").waitFor();
  expect(streams).toEqual([]);
  await page.close();
  await expect.poll(() => streams.length).toBe(1);
  await post("/threads", { id: "later", title: "Made later" });
  await other.getByText("Made later").waitFor();
});

test("a question about a file change shows the difference, which must be viewed to its end before it can be allowed", async () => {
  const before = Array.from({ length: 60 }, (_, at) => `line ${at}\n`).join("");
  const edit = { path: "a.txt", old_text: "line 3\n", new_text: "line three\u202e\nand more\r\n" };
  const { page, card, messages, allowErrors } = await asked([
    { call: [{ tool: "write_file", args: { path: "a.txt", content: before } }] },
    { call: [{ tool: "edit_file", args: edit }] },
    { say: "It is changed." },
  ]);
  await card("write_file").getByText("a new file").waitFor();
  // The browser reports a file that is not there yet.
  allowErrors("404");
  const allow = (name: string) => card(name).getByRole("button", { name: "Allow", exact: true });
  await allow("write_file").waitFor();
  await expect.poll(() => allow("write_file").isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Show the end" }).click();
  await allow("write_file").click();

  await card("edit_file").getByText("compared with the current file").waitFor();
  const lines = (kind: string) => card("edit_file").locator(`tr.${kind} code`).allTextContents();
  await expect.poll(() => lines("removed")).toEqual(["line 3"]);
  await expect.poll(() => lines("added")).toEqual(["line three⟨U+202E⟩", "and more⟨U+000D⟩"]);
  await expect
    .poll(() => lines("same"))
    .toEqual(["line 0", "line 1", "line 2", "line 4", "line 5", "line 6"]);
  await card("edit_file").getByRole("button", { name: "Show the arguments" }).click();
  await card("edit_file").getByText("old_text").waitFor();
  await allow("edit_file").click();
  await expect.poll(messages).toContain("It is changed.");
});
