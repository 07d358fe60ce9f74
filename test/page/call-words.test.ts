import { describe, expect, test as pure } from "vitest";
import type { ToolCell } from "../../src/client/cells.ts";
import { badEndOf, tasksOf, wholeOutputIn, wordsOf } from "../../src/page/call-words.ts";
import { en } from "../../src/page/texts/en.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { cast, completing, delegating, TEAM } from "../support/team.ts";
import { runs, seen } from "./seen.ts";

const line = (name: string, args: object, state: ToolCell["state"] = "done") => {
  const words = wordsOf({ name, args: { ...args }, state }, en.calls);
  return words && [words.verb, words.object, words.rest].filter(Boolean).join(" ");
};

describe("a built-in tool's call in words", () => {
  pure("says what was done, is being done, or was wanted", () => {
    expect(line("write_file", { path: "a.md", content: "" })).toBe("Wrote a.md");
    expect(line("write_file", { path: "a.md" }, "open")).toBe("Writing a.md");
    expect(line("write_file", { path: "a.md" }, "failed")).toBe("Write a.md");
    expect(line("read_file", { file_path: "notes.md" })).toBe("Read notes.md");
    expect(line("ls", {})).toBe("Listed");
    expect(line("execute", { command: "npm test" }, "waits")).toBe("Run npm test");
    expect(line("request_host", { host: "example.com", reason: "r" }, "waits")).toBe("Ask for example.com");
    expect(line("web_search", { query: "wool" }, "open")).toBe("Searching for wool");
  });
  pure("counts the lines of an edit, the steps of a plan, and tasks", () => {
    const edit = { path: "app.ts", old_text: "a\nb\n", new_text: "a\nc\nd\ne\n" };
    expect(line("edit_file", edit)).toBe("Edited app.ts +3 −1");
    const todos = [{ status: "done" }, { status: "pending" }, { status: "in_progress" }];
    expect(line("write_todos", { todos })).toBe("Plan: 1 of 3");
    expect(line("delegate", { tasks: [{}, {}] })).toBe("Delegated 2 tasks");
    expect(line("create_tasks", { tasks: [{}] })).toBe("Task board: 1 task");
    expect(line("update_task", { id: "t1", status: "done" })).toBe("Updated the task t1 done");
  });
  pure("leaves other tools and arguments of other kinds as they are", () => {
    expect(line("weather", { path: "a" })).toBeUndefined();
    expect(line("constructor", {})).toBeUndefined();
    expect(line("write_file", { path: 3 })).toBeUndefined();
  });
});

pure("a command that ended with an error looks unlike one that printed such words", () => {
  expect(badEndOf("execute", "no\n[exit_code: 3]", en.calls)).toBe("exit 3");
  expect(badEndOf("execute", "[exit_code: 2, 70 characters of output left out]", en.calls)).toBe("exit 2");
  expect(badEndOf("execute", "[killed by SIGTERM]", en.calls)).toBe("killed by SIGTERM");
  expect(badEndOf("execute", "[exit_code: 3]\n[exit_code: 0]", en.calls)).toBeUndefined();
  expect(badEndOf("read_file", "[exit_code: 3]", en.calls)).toBeUndefined();
});

pure("only the file of a shortened output is a link", () => {
  const note = (path: string) => `a\n\n... (truncated 9 characters; the full text is in ${path}) ...\n\nz`;
  expect(wholeOutputIn(note(".skein/results/r-1.txt"))).toBe(".skein/results/r-1.txt");
  expect(wholeOutputIn(note("../secret.txt"))).toBeUndefined();
  expect(wholeOutputIn("nothing")).toBeUndefined();
});

pure("the tasks of a call are known by agent", () => {
  const task = { agent: "a", task: "Find it." };
  expect(tasksOf({ tasks: [task, 3, { agent: "b" }] })).toEqual([task]);
  expect(tasksOf({ ...task, context: "" })).toEqual([task]);
});

test("cards describe in words what was done; a failed command is open, and a long output can be opened in full", async () => {
  const todos = [{ id: "a", title: "Look", status: "done" }];
  const { url } = await startServer({
    agents: `agents: { assistant: { model: "scripted:test", backend: { type: local }, permissions: { mode: bypass }, hooks: { eviction: { max_chars: 4000 } } } }`,
    script: [
      { say: "", call: [{ tool: "write_todos", args: { todos } }] },
      { say: "", call: [{ tool: "write_file", args: { path: "report/summary.md", content: "a\nb\n" } }] },
      { say: "", call: [{ tool: "execute", args: { command: "echo no; exit 3" } }] },
      { say: "", call: [{ tool: "execute", args: { command: "seq 9999" } }] },
      { say: "There." },
    ],
  });
  await runs(url, "one", { input: "Go." });
  const tab = await seen(url);
  await tab.go("#/t/one", "There.");
  const lines = tab.page.locator(".call > summary");
  await expect
    .poll(async () => (await lines.allInnerTexts()).map((text) => text.replace(/\s+/g, " ")))
    .toEqual([
      expect.stringContaining("Plan: 1 of 1"),
      expect.stringContaining("Wrote report/summary.md"),
      expect.stringMatching(/! Ran echo no; exit 3 exit 3/),
      expect.stringContaining("Ran seq 9999"),
    ]);
  await expect.poll(() => tab.page.locator(".card.odd details").getAttribute("open")).not.toBeNull();
  await expect.poll(() => tab.page.locator("details.call[open]").count()).toBe(1);
  await lines.nth(3).click();
  await tab.page.getByRole("button", { name: /^Open the full output: \.skein\/results/ }).click();
  await tab.page.getByRole("dialog").getByText("5000").first().waitFor();
});

test("a task whose subagent failed is not shown as done, and its context has no tags, even on a phone", async () => {
  const { url } = await startServer({
    agents: TEAM,
    script: cast({
      lead: [delegating({ agent: "coder", task: "Write it." }), { say: "It could not." }],
      coder: [
        completing("There was nothing to write, however long it looked for something.", { status: "failed" }),
      ],
    }),
  });
  await runs(url, "one", { input: "Go.", agent: "lead" });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/t/one", "It could not.");
  await tab.look({ theme: "light", width: 390, height: 844 });
  const card = page.locator(".card.odd");
  await expect.poll(() => card.locator(".call > summary .much").innerText()).toBe("failed");
  const line = card.locator(".agent > summary");
  const places = async () => {
    const [name = 0, state = 99, words = 0] = await page.evaluate<number[]>(
      `["b", ".much", ".line"].map((part) => document.querySelector(".card.odd .agent > summary " + part).getBoundingClientRect().y)`,
    );
    return { isStateBeside: Math.abs(name - state) < 8, areWordsBelow: words > name + 8 };
  };
  // The name and its state share a line, and the words have one of their own.
  await expect.poll(places).toEqual({ isStateBeside: true, areWordsBelow: true });
  await line.click();
  await page.getByText("gives you a task").waitFor();
  await expect.poll(() => page.getByText("delegation_context").count()).toBe(0);
});
