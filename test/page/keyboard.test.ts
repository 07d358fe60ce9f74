import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const ASKING = `
agents:
  assistant:
    model: "scripted:test"
    backend: { type: local }
    permissions: { rules: [{ ask: execute }, { allow: "write_*" }, { allow: "read_*" }, { allow: ls }, { allow: browse }] }
`;

/** Presses Tab until the element with this name has the focus; says what was passed when none has. */
async function tabTo(page: Page, name: string | RegExp): Promise<void> {
  const passed: string[] = [];
  for (let press = 0; press < 100; press++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate<string>(
      `(document.activeElement.getAttribute("aria-label") || document.activeElement.textContent || "").trim()`,
    );
    if (typeof name === "string" ? at === name : name.test(at)) return;
    passed.push(at);
  }
  expect(passed).toContain(String(name));
}

const sees = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first().waitFor();

describe("without a mouse", () => {
  test("a person writes a message, allows a call and reads the answer", async () => {
    const { url } = await startServer({
      agents: ASKING,
      script: [
        { say: "May I?", call: [{ tool: "execute", args: { command: "echo $((6 * 7))" } }] },
        { say: "It is done." },
      ],
    });
    const { page } = await seen(url);
    await page.getByLabel("Message", { exact: true }).waitFor();
    await tabTo(page, "Message");
    await page.keyboard.type("Compute it.");
    await page.keyboard.press("Enter");
    await sees(page, "May I?");
    await page
      .getByRole("button", { name: "Allow", exact: true })
      .and(page.locator(":enabled"))
      .first()
      .waitFor();
    await tabTo(page, "Allow");
    await page.keyboard.press("Enter");
    await sees(page, "It is done.");
    await tabTo(page, /^✓?Ran/);
    await page.keyboard.press("Enter");
    await sees(page, "42");
  });

  test("a person moves through the spans of a trace with arrow keys", async () => {
    const { url } = await startServer({
      agents: ASKING,
      script: [{ say: "Looking.", call: [{ tool: "ls", args: {} }] }, { say: "Done." }],
    });
    const run = await runs(url, "traced", { input: "Look." });
    const tab = await seen(url);
    const { page } = tab;
    await tab.go(`#/t/traced/r/${run}/trace`, "scripted:test");
    const spans = page.locator("button.span");
    await spans.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await sees(page, "First token after");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => spans.count()).toBe(1);
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => spans.count()).toBe(4);
  });

  test("a person skips the navigation, and the focus follows each change of view", async () => {
    const { url } = await startServer({ agents: ASKING });
    await runs(url, "one", { input: "First." });
    await runs(url, "two", { input: "Second." });
    const tab = await seen(url);
    const { page } = tab;
    await page.getByLabel("Message", { exact: true }).waitFor();
    const focused = () =>
      page.evaluate<string>(
        `document.activeElement.getAttribute("aria-label") || document.activeElement.textContent`,
      );
    for (const [hash, heading] of [
      ["#/runs", "Runs"],
      ["#/usage", "Usage"],
      ["#/settings", "Settings"],
      ["#/inbox", "Inbox"],
    ] as const) {
      await tab.go(hash, heading);
      await expect.poll(focused).toBe(heading);
    }
    await tab.go("#/t/one", "First.");
    await expect.poll(focused).toBe("Message");

    await page.reload();
    // Once it is drawn, the view takes the focus.
    await expect.poll(focused).toBe("Message");
    await page.evaluate("document.activeElement.blur()");
    await page.locator(".brand").focus();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Shift+Tab");
    await expect.poll(() => focused()).toBe("To the message field");
    await page.keyboard.press("Enter");
    await expect.poll(() => focused()).toBe("Message");

    const stops = `[...document.querySelectorAll(".thread :is(a, button)")].filter((each) => each.tabIndex >= 0).length`;
    await expect.poll(() => page.evaluate(stops)).toBe(2);
    await page.locator(".thread > a").first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => focused()).toBe("Rename or delete First.");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
  });

  test("a person finds conversations, text in messages, agents, views and actions with Ctrl+K", async () => {
    const { url } = await startServer({ agents: ASKING, script: () => ({ say: "The Needle is here." }) });
    await runs(url, "hay", { input: "A haystack" });
    const tab = await seen(url);
    const { page } = tab;
    await tab.go("#/", "haystack");
    const field = page.getByRole("combobox", { name: /^Conversation, words/ });
    const finds = async (words: string, option: RegExp) => {
      await page.keyboard.press("Control+K");
      await field.waitFor();
      await page.keyboard.type(words);
      const found = page.getByRole("option", { name: option, selected: true });
      await found.waitFor();
      // A screen reader reads the option that the field names.
      const isNamed = async () =>
        (await field.getAttribute("aria-activedescendant")) === (await found.getAttribute("id"));
      await expect.poll(isNamed).toBe(true);
    };
    await finds("needle", /^Message A haystack/);
    for (const width of [1280, 390])
      for (const theme of ["light", "dark"] as const) {
        await tab.look({ theme, width, height: 800 });
        await tab.screenshot(`palette-${theme}-${width}`);
        expect(await tab.barriers()).toEqual([]);
      }
    await tab.look({ theme: "light", width: 1280, height: 800 });
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/t\/hay\/m\/msg_.*\/needle$/);
    await finds("hays", /^Conversation A haystack/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/t\/hay$/);
    await finds("agent assis", /^Agent assistant/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/agents\/assistant$/);
    await finds("usage", /^View Usage/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/usage$/);
    await finds("action search", /^Action Search/);
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate("document.activeElement.className")).toBe("search");
    // On a phone the search is in the drawer, which opens.
    await tab.look({ theme: "light", width: 390, height: 800 });
    await finds("action search", /^Action Search/);
    await page.keyboard.press("Enter");
    const drawer = page.getByRole("dialog", { name: "Skein" });
    await drawer.getByRole("searchbox").waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.className")).toBe("search");
    await drawer.getByRole("button", { name: "Close" }).press("Enter");
    await drawer.waitFor({ state: "detached" });
    await tab.look({ theme: "light", width: 1280, height: 800 });
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
  });

  test("text typed after Ctrl+K goes into its field, even while the results are loading", async () => {
    const { url } = await startServer({ agents: ASKING });
    const { page, go } = await seen(url);
    const loading = Promise.withResolvers<void>();
    await page.route(/page\/palette.*\.js$/, async (route) => {
      await loading.promise;
      await route.continue();
    });
    await go("#/", "New conversation");
    const message = page.getByLabel("Message", { exact: true });
    await message.focus();
    await page.keyboard.press("Control+K");
    await page.keyboard.type("usage");
    await page.keyboard.press("Enter");
    await expect.poll(() => message.inputValue()).toBe("");
    await expect.poll(() => page.evaluate("location.hash")).toBe("#/");
    loading.resolve();
    await page.getByRole("option", { name: /^View Usage/, selected: true }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/usage$/);
    await expect.poll(() => page.getByRole("article").count()).toBe(0);
  });

  test("the focus is visible in every view", async () => {
    const { url } = await startServer({ agents: ASKING });
    await runs(url, "one", { input: "Hello." });
    const tab = await seen(url);
    for (const [hash, heading, text] of [
      ["#/t/one", "", "ok"],
      ["#/runs", "Runs", "Done"],
      ["#/usage", "Usage", "scripted:test"],
      ["#/agents/assistant", "assistant", "Your changes"],
      ["#/settings", "Settings", "Colours"],
    ] as const) {
      await tab.go(hash, text);
      await tab.page.locator("main h1", { hasText: heading }).waitFor();
      for (let press = 0; press < 25; press++) {
        await tab.page.keyboard.press("Tab");
        const unseen = await tab.page.evaluate<string>(`(() => {
          const at = document.activeElement;
          if (at === document.body) return "";
          const { outlineStyle, outlineWidth, boxShadow, borderColor } = getComputedStyle(at);
          const isSeen = (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none" ||
            at.matches(":focus-within, iframe") && at.closest(".box") !== null;
          return isSeen ? "" : at.outerHTML.slice(0, 200);
        })()`);
        expect([hash, unseen]).toEqual([hash, ""]);
      }
    }
  });
});
