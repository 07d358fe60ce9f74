import { readFile } from "node:fs/promises";
import { describe, expect } from "vitest";
import { z } from "zod";
import { defineTool } from "../../src/agent/core/tool.ts";
import { test } from "../support/chromium.ts";
import { gate, gated, WITH_GATE } from "../support/gate.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { runs, seen } from "./seen.ts";

describe("the trace of a run", () => {
  test("shows a call in progress, and its time once it is done", async () => {
    const { tool, open, entered } = gate();
    const { url } = await startServer({ agents: WITH_GATE, tools: [tool], script: gated });
    const run = await runs(url, "one", { input: "Go.", background: true });
    await entered;
    const tab = await seen(url);
    await tab.go(`#/t/one/r/${run}/trace`, "gate");
    await tab.page.getByRole("button", { name: "Tool call, gate, in progress", exact: true }).waitFor();
    open();
    await tab.page.getByRole("button", { name: /^Tool call, gate, \d/ }).waitFor();
    await expect.poll(() => tab.page.getByRole("button", { name: /^Model call, / }).count()).toBe(2);
  });

  test("explains how the server can record model requests", async () => {
    const { url } = await startServer();
    const run = await runs(url, "one", { input: "Go." });
    const tab = await seen(url);
    await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
    await tab.page.getByRole("button", { name: /^Model call, / }).click();
    await tab.page.getByRole("button", { name: "Request to the model" }).click();
    await tab.page.getByText("traces: { requests: true }").waitFor();
    tab.allowErrors("404");
  });

  test("shows the model requests if the server records them", async () => {
    const { url } = await startServer({
      config: { traces: { requests: true } },
      agents: `agents: { assistant: { model: "scripted:test", system_prompt: You are careful. } }`,
    });
    const run = await runs(url, "one", { input: "Go." });
    const tab = await seen(url);
    await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
    await tab.page.getByRole("button", { name: /^Model call, / }).click();
    await tab.page.getByRole("button", { name: "Request to the model" }).click();
    await tab.page.getByText(/^System prompt/).click();
    await tab.page.locator(".piece summary").first().click();
    await tab.page.getByText("You are careful.").waitFor();
  });
});

test("a card and an answer lead to their spans, even after a reload, and the spans lead back, by keyboard and on a phone", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test', tools: [current_datetime] } }",
    script: (_, call) =>
      call === 1 ? { call: [{ tool: "current_datetime", args: {} }] } : { say: `Answer ${call}.` },
  });
  const first = await runs(url, "one", { input: "Hello." });
  const second = await runs(url, "one", { input: "And now?" });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/t/one", "Answer 2.");
  await page.locator(".card .call > summary, .card button.call, .card .call").first().click();
  await page.locator(".card").getByRole("button", { name: "Trace" }).press("Enter");
  await page.waitForURL(new RegExp(`/r/${second}/trace/`));
  const details = page.getByRole("region", { name: "Details of current_datetime" });
  await details.waitFor();
  await tab.look({ theme: "dark", width: 390, height: 800 });
  await tab.screenshot("page-span-390");
  expect(await tab.barriers()).toEqual([]);
  await details.getByRole("link", { name: "Show in the conversation" }).press("Enter");
  await expect.poll(() => page.evaluate("document.activeElement.className")).toMatch(/^card .*found/);

  await page.reload();
  const answer = page.getByRole("article").filter({ hasText: "Answer 0." });
  await answer.getByRole("button", { name: "Trace" }).press("Enter");
  await page.waitForURL(new RegExp(`/r/${first}/trace/`));
  await page.getByRole("region", { name: "Details of scripted:test" }).waitFor();
  await page.getByRole("link", { name: "Show in the conversation" }).click();
  await expect.poll(() => page.evaluate("document.activeElement.textContent")).toMatch(/^Answer 0\./);

  // A copy has no run that wrote it.
  const { id } = await json(`${url}/threads/one/fork`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  await tab.go(`#/t/${String(id)}`, "Answer 2.");
  await page
    .getByRole("article")
    .filter({ hasText: "Answer 0." })
    .getByRole("button", { name: "Trace" })
    .click();
  await page.getByText("it was copied from another conversation").waitFor();
});

test("a run's events can be filtered by name and copied as one JSON per line", async () => {
  const { url } = await startServer();
  const run = await runs(url, "one", { input: "Go." });
  const { page, ...tab } = await seen(url);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tab.go(`#/t/one/r/${run}/events`, "run_start");
  await page.getByRole("button", { name: /^on_message/ }).click();
  await page.getByRole("button", { name: "Copy 2 as NDJSON" }).click();
  await page.getByText("Copied").waitFor();
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  const events = copied.split("\n").map((line) => JSON.parse(line));
  expect(events.map(({ event, data }) => [event, data.message.role])).toEqual([
    ["on_message", "user"],
    ["on_message", "assistant"],
  ]);
});

test("the runs of all threads appear when they start, change when they end, and can be filtered by status", async () => {
  const { tool, open, entered } = gate();
  const { url } = await startServer({ agents: WITH_GATE, tools: [tool], script: gated });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/runs", "appear here after your first message");
  await runs(url, "one", { input: "Go.", background: true });
  await entered;
  const row = page.locator("main tbody tr");
  await row.getByText("Running").waitFor();
  open();
  await row.getByText("Done").waitFor();
  await page.getByLabel("Status").selectOption("Failed");
  await page.getByText("No runs match these filters.").waitFor();
  await expect.poll(() => page.locator("main table").count()).toBe(0);
  await page.getByLabel("Status").selectOption("Done");
  await row.getByRole("link", { name: /^Trace/ }).click();
  await page.getByRole("button", { name: /^Tool call, gate/ }).waitFor();
});

test("a run can be repeated with other text and instructions, and both are shown side by side", async () => {
  const { url } = await startServer({
    script: ({ messages, system }) => {
      const text = JSON.stringify([system, messages]);
      return { say: `${messages.length} messages${text.includes("Be brief.") ? ", briefly" : ""}.` };
    },
  });
  await runs(url, "one", { input: "First." });
  // As a subagent is asked: with what its task is about first.
  const asked = ["Its context.", "Second."].map((content) => ({ role: "user", content }));
  const run = await runs(url, "one", { messages: asked });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
  await page.getByRole("button", { name: "Run again…" }).click();
  const dialog = page.getByRole("dialog", { name: "Run again and compare" });
  await expect.poll(() => dialog.getByLabel("Message", { exact: true }).inputValue()).toBe("Second.");
  await dialog.getByLabel("Message", { exact: true }).fill("Second, said otherwise.");
  await dialog.getByLabel("Instructions for this run").fill("Be brief.");
  expect(await tab.barriers()).toEqual([]);
  await dialog.getByRole("button", { name: "Run and compare" }).click();

  const [first, second] = ["First run", "Second run"].map((name) => page.getByRole("region", { name }));
  await first?.getByText("4 messages.").waitFor();
  await second?.getByText("5 messages, briefly.").waitFor();
  await second?.getByText("Second, said otherwise.").waitFor();
  await second?.getByText("scripted:test").waitFor();
  for (const width of [1280, 390]) {
    await tab.look({ theme: "light", width, height: 800 });
    await tab.screenshot(`page-compare-${width}`);
    expect(await tab.barriers()).toEqual([]);
  }
  // The conversation stays as it was.
  const { messages } = await json(`${url}/threads/one/state`);
  expect(messages).toHaveLength(5);
});

test("a step can be repeated with other instructions from the earlier context, and compared, by keyboard", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test', tools: [current_datetime] } }",
    script: ({ messages, system }) => {
      if (messages.length === 1) return { call: [{ tool: "current_datetime", args: {} }] };
      const text = JSON.stringify([system, messages]);
      return { say: text.includes("Be brief.") ? `Briefly after ${messages.at(-1)?.role}.` : "At length." };
    },
  });
  const run = await runs(url, "one", { input: "What time is it?" });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
  const steps = page.getByRole("button", { name: /^Model call, / });
  await steps.last().press("Enter");
  await page.getByRole("button", { name: "Run again from here…" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Run this step again and compare" });
  await dialog.getByLabel("Instructions for this run").fill("Be brief.");
  await tab.look({ theme: "dark", width: 390, height: 800 });
  await tab.screenshot("page-step-again-390");
  expect(await tab.barriers()).toEqual([]);
  await dialog.getByRole("button", { name: "Run and compare" }).press("Enter");
  await page.getByRole("region", { name: "First run" }).getByText("At length.").waitFor();
  await page.getByRole("region", { name: "Second run" }).getByText("Briefly after").waitFor();

  // Without instructions the copy is answered as it ends.
  await tab.look({ theme: "light", width: 1280, height: 800 });
  await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
  await steps.last().click();
  await page.getByRole("button", { name: "Run again from here…" }).click();
  await dialog.getByRole("button", { name: "Run and compare" }).click();
  await page.getByRole("region", { name: "Second run" }).getByText("At length.").waitFor();
  const { messages } = await json(`${url}/threads/one/state`);
  expect(messages).toHaveLength(4);
});

test("a step's calls can run with other arguments, and both runs are compared; errors are shown before that", async () => {
  const lookUp = defineTool({
    name: "look_up",
    description: "Looks up a word.",
    parameters: z.object({ word: z.string() }),
    execute: ({ word }) => `${word}: found`,
  });
  const { url } = await startServer({
    agents: `
agents:
  assistant: { model: "scripted:test", tools: [look_up] }
  plain: { model: "scripted:test" }`,
    tools: [lookUp],
    script: ({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "tool") return { say: `I read ${last.content}.` };
      return { call: [{ tool: "look_up", args: { word: "apple" } }] };
    },
  });
  const run = await runs(url, "one", { input: "Look it up." });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
  await page
    .getByRole("button", { name: /^Model call, / })
    .first()
    .press("Enter");
  await page.getByRole("button", { name: "Run again from here…" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Run this step again and compare" });
  await dialog.getByRole("radio", { name: "Call the model again" }).press("ArrowDown");
  const args = dialog.getByLabel(/^Arguments of look_up/);
  await expect.poll(async () => JSON.parse(await args.inputValue())).toEqual({ word: "apple" });
  const begin = dialog.getByRole("button", { name: "Run and compare" });
  const faults = [
    ['["pear"]', "look_up: The arguments must be one JSON object"],
    ['{"word": pear}', "look_up: This is not JSON"],
  ] as const;
  for (const [text, fault] of faults) {
    await args.fill(text);
    await begin.press("Enter");
    await dialog.getByText(fault).waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.value")).toBe(text);
  }
  for (const [theme, width] of [
    ["light", 1440],
    ["dark", 390],
  ] as const) {
    await tab.look({ theme, width, height: 900 });
    await tab.screenshot(`page-calls-again-${width}`);
    expect(await tab.barriers()).toEqual([]);
  }

  // A run that the server refuses leaves no copy.
  await args.fill('{"word": "pear"}');
  await dialog.getByLabel("Agent").selectOption("plain");
  await begin.press("Enter");
  await dialog.getByText("agent `plain` has no tool `look_up`").waitFor();
  expect((await json(`${url}/threads`)).items).toHaveLength(1);
  tab.allowErrors("400");
  await dialog.getByLabel("Agent").selectOption("assistant");
  await begin.press("Enter");
  const [first, second] = ["First run", "Second run"].map((name) => page.getByRole("region", { name }));
  await first?.getByText("I read apple: found.").waitFor();
  await second?.getByText("I read pear: found.").waitFor();
  for (const [theme, width] of [
    ["light", 1440],
    ["dark", 390],
  ] as const) {
    await tab.look({ theme, width, height: 900 });
    await tab.screenshot(`page-calls-compared-${width}`);
  }

  // From a call, its arguments are shown at once.
  await tab.go(`#/t/one/r/${run}/trace`, "scripted:test");
  await page.getByRole("button", { name: /^Tool call, look_up/ }).click();
  await page.getByRole("button", { name: "Run with other arguments…" }).click();
  await args.fill('{"word": "plum"}');
  await begin.click();
  await page.getByRole("region", { name: "Second run" }).getByText("I read plum: found.").waitFor();
  const { messages } = await json(`${url}/threads/one/state`);
  expect(messages).toHaveLength(4);
});

test("usage is shown by day, agent and model, with the rest of each limit, and costs always have their currency", async () => {
  const used = { input_tokens: 900, output_tokens: 100 };
  const { url } = await startServer({
    config: {
      quotas: {
        user: { tokens_per_day: 10_000 },
        currency: "EUR",
        prices: { "scripted:test": { input: 1000, output: 1000 } },
      },
    },
    script: [{ say: "ok", usage: used }],
  });
  await runs(url, "one", { input: "Go." });
  const tab = await seen(url);
  await tab.go("#/usage", "Tokens per day");
  const { page } = tab;
  await page.getByRole("cell", { name: "1,000 of 10,000" }).waitFor();
  await page.getByRole("cell", { name: "9,000" }).waitFor();
  await page.getByRole("row", { name: /^assistant/ }).waitFor();
  await page.getByText("Table", { exact: true }).click();
  await page.getByRole("row", { name: /^[A-Z][a-z]{2} \d+, \d{4} 1K$/ }).waitFor();
  await page.getByText("€1.00").waitFor();

  const saving = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).press("Enter");
  const [names, row, end] = (await readFile(await (await saving).path(), "utf8")).split("\r\n");
  expect(names).toBe(
    "day,agent,model,calls,input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,cost,currency",
  );
  expect(row).toMatch(/^\d{4}-\d\d-\d\d,assistant,scripted:test,1,900,0,0,100,1,EUR$/);
  expect(end).toBe("");

  // A table of runs shows costs where it has the room.
  await page.setViewportSize({ width: 1440, height: 900 });
  await tab.go("#/runs", "€1.00");
  await page.getByRole("cell", { name: "Go.", exact: true }).waitFor();
  await tab.go("#/t/one", "€1.00");
});
