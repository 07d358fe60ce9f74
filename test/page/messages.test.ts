import type { Page } from "playwright-core";
import { afterAll, describe, expect } from "vitest";
import { startChromium } from "../support/chromium.ts";
import { needing } from "../support/needing.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const chromium = await startChromium();
afterAll(() => chromium?.close());
const { test } = needing(chromium, "Chromium");

const field = (page: Page) => page.getByLabel("Message", { exact: true });

/** Every button below a message, as far as it hangs out of the box that draws it, in pixels. */
const HANGING = `
  [...document.querySelectorAll(".messages > article button")].filter((each) => each.checkVisibility()).map((each) => {
    const [inner, outer] = [each, each.closest("article")].map((at) => at.getBoundingClientRect());
    return Math.max(outer.left - inner.left, inner.right - outer.right, inner.bottom - outer.bottom, outer.top - inner.top);
  })
`;

test("the buttons of a message are whole, and a bubble is as wide as its words", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test', tools: [ls] } }",
    script: (_, call) =>
      call === 0
        ? { say: "Looking.", call: [{ tool: "ls", args: {} }] }
        : { say: "A long answer. ".repeat(call * 40) },
  });
  await runs(url, "one", { input: "Hi" });
  await runs(url, "one", { input: `At length: ${"word ".repeat(80)}` });
  const tab = await seen(chromium, url);
  for (const width of [1440, 1024, 390]) {
    await tab.look({ theme: "light", width, height: 900 });
    await tab.go("#/t/one", "A long answer.");
    const hanging = await tab.page.evaluate<number[]>(HANGING);
    expect(hanging.length).toBeGreaterThan(8);
    expect(hanging.filter((px) => px > 0)).toEqual([]);
    const [short, long] = await tab.page.evaluate<number[]>(
      `[...document.querySelectorAll(".said > .words")].map((each) => each.getBoundingClientRect().width)`,
    );
    expect(short).toBeLessThan(60);
    expect(long).toBeGreaterThan(250);
    expect(await tab.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    await tab.screenshot(`messages-${width}`);
  }
});

describe("on a page of plain http, which has no clipboard of its own", () => {
  const opened = async (script: string) => {
    const { url } = await startServer({ script: [{ say: "Take `this`." }] });
    await runs(url, "one", { input: "Words to keep" });
    const tab = await seen(chromium, url);
    await tab.page.addInitScript(`
      Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined });
      ${script}
    `);
    await tab.page.goto(`${url}/#/t/one`);
    await tab.page.reload();
    await tab.go("#/t/one", "Take");
    return tab;
  };

  test("text is copied, also from a dialog", async () => {
    const { page } = await opened("");
    await page.getByRole("article", { name: "You" }).hover();
    await page.getByRole("button", { name: "Copy", exact: true }).first().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    await field(page).focus();
    await page.keyboard.press("Control+V");
    await expect.poll(() => field(page).inputValue()).toBe("Words to keep");

    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "Copy as JSON" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Copied" }).waitFor();
    await page.keyboard.press("Escape");
    await field(page).fill("");
    await page.keyboard.press("Control+V");
    await expect.poll(() => field(page).inputValue()).toContain('"Words to keep"');
  });

  test("text that the browser does not let the page copy is selected for the person", async () => {
    const { page } = await opened("document.execCommand = () => false;");
    await page.getByRole("article", { name: "You" }).hover();
    await page.getByRole("button", { name: "Copy", exact: true }).first().click();
    const text = page.getByRole("dialog").getByRole("textbox");
    await expect.poll(() => text.inputValue()).toBe("Words to keep");
    await expect.poll(() => page.evaluate("getSelection().toString()")).toBe("Words to keep");
  });
});
