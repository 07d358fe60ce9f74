import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { json } from "../support/team.ts";
import { runs, seen } from "./seen.ts";

const field = (page: Page) => page.getByLabel("Message", { exact: true });

/** Every button below a message, as far as it hangs out of the box that draws it, in pixels. */
const HANGING = `
  [...document.querySelectorAll(".messages > article button")].filter((each) => each.checkVisibility()).map((each) => {
    const [inner, outer] = [each, each.closest("article")].map((at) => at.getBoundingClientRect());
    return Math.max(outer.left - inner.left, inner.right - outer.right, inner.bottom - outer.bottom, outer.top - inner.top);
  })
`;

/** Words of an answer on which its buttons lie. */
const COVERED = `
  [...document.querySelectorAll(".answer:has(> .actions)")].flatMap((answer) => {
    // What is not in sight has no layout.
    answer.style.contentVisibility = "visible";
    const buttons = answer.querySelector(".actions").getBoundingClientRect();
    const texts = document.createTreeWalker(answer.querySelector(".markdown"), NodeFilter.SHOW_TEXT);
    const words = document.createRange();
    const rects = [];
    while (texts.nextNode()) {
      words.selectNodeContents(texts.currentNode);
      rects.push(...words.getClientRects());
    }
    return rects.filter(({ left, right, top, bottom }) =>
      right > buttons.left && left < buttons.right && bottom > buttons.top + 1 && top < buttons.bottom - 1)
      .map(() => answer.textContent.slice(0, 60));
  })
`;

test("a message's buttons are complete and cover no text, and a bubble is as wide as its text", async () => {
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test', tools: [ls] } }",
    script: (_, call) =>
      call === 0
        ? { say: "Looking.", call: [{ tool: "ls", args: {} }] }
        : { say: `${"A long answer. ".repeat(call * 40)}${call === 2 ? "\n\n- A list at its end" : ""}` },
  });
  await runs(url, "one", { input: "Hi" });
  await runs(url, "one", { input: `At length: ${"word ".repeat(80)}` });
  await runs(url, "one", { input: "Again" });
  const tab = await seen(url);
  for (const width of [1440, 1024, 390]) {
    await tab.look({ theme: "light", width, height: 900 });
    await tab.go("#/t/one", "A long answer.");
    const hanging = async () => {
      const all = await tab.page.evaluate<number[]>(HANGING);
      return { areMany: all.length > 8, hanging: all.filter((px) => px > 0) };
    };
    await expect.poll(hanging).toEqual({ areMany: true, hanging: [] });
    await expect.poll(() => tab.page.evaluate(COVERED), { message: `${width}` }).toEqual([]);
    const bubbles = async () => {
      const [short = 999, long = 0] = await tab.page.evaluate<number[]>(
        `[...document.querySelectorAll(".said > .words")].map((each) => each.getBoundingClientRect().width)`,
      );
      return { isShort: short < 60, isLong: long > 250 };
    };
    await expect.poll(bubbles).toEqual({ isShort: true, isLong: true });
    await expect.poll(() => tab.page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    await tab.screenshot(`messages-${width}`);
  }
});

describe("on a page over plain http, without a clipboard", () => {
  const opened = async (script: string) => {
    const { url } = await startServer({ script: [{ say: "Take `this`." }] });
    await runs(url, "one", { input: "Words to keep" });
    const tab = await seen(url);
    await tab.page.addInitScript(`
      Object.defineProperty(Navigator.prototype, "clipboard", { value: undefined });
      ${script}
    `);
    await tab.page.goto(`${url}/#/t/one`);
    await tab.page.reload();
    await tab.go("#/t/one", "Take");
    return tab;
  };

  test("text can be copied, even from a dialog", async () => {
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
    await page.getByRole("dialog").waitFor({ state: "detached" });
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

const sees = (page: Page, text: string) => page.getByText(text).filter({ visible: true }).first().waitFor();
const says = async (page: Page, text: string) => {
  await field(page).fill(text);
  await page.keyboard.press("Enter");
};
const said = (page: Page) => page.locator(".said > .words, .answer > .markdown").allTextContents();

test("a message that is edited or answered again keeps its versions, and navigation between them", async () => {
  const { url } = await startServer({ script: (_, call) => ({ say: `Answer ${call + 1}.` }) });
  const { page, barriers, screenshot } = await seen(url);
  const you = page.getByRole("article", { name: "You" });
  await says(page, "Hello.");
  await sees(page, "Answer 1.");
  await says(page, "To Sweden.");
  await sees(page, "Answer 2.");
  await you.nth(1).hover();
  await you.nth(1).getByRole("button", { name: "Rewrite" }).click();
  await sees(page, "stay available as another version");
  await says(page, "To Norway.");
  await sees(page, "Answer 3.");
  const versions = page.getByRole("group", { name: "Versions" });
  await sees(page, "2/2");
  await screenshot("page-versions");
  await versions.getByRole("button", { name: "Previous version" }).click();
  await sees(page, "1/2");
  await expect.poll(() => said(page)).toEqual(["Hello.", "Answer 1.", "To Sweden.", "Answer 2."]);
  // By keyboard: the focus is where it was.
  await page.waitForFunction(`document.activeElement.closest(".versions")`);
  await page.keyboard.press("Enter");
  await sees(page, "2/2");
  await expect.poll(() => said(page)).toEqual(["Hello.", "Answer 1.", "To Norway.", "Answer 3."]);

  await you.nth(0).hover();
  await you.nth(0).getByRole("button", { name: "Retry" }).click();
  await sees(page, "Answer 4.");
  await sees(page, "2/2");
  await page.reload();
  await versions.getByRole("button", { name: "Previous version" }).click();
  await sees(page, "Answer 3.");
  await expect.poll(() => versions.count()).toBe(2);
  expect(await barriers()).toEqual([]);
});

test("a deleted conversation can be restored for ten seconds, and the server learns of it only then", async () => {
  const { url } = await startServer();
  await runs(url, "one", { input: "Keep me" });
  const tab = await seen(url, { ownContext: true });
  const { page } = tab;
  await page.clock.install();
  await tab.go("#/t/one", "Keep me");
  const deleted: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "DELETE") deleted.push(new URL(request.url()).pathname);
  });
  const removes = async () => {
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "Rename or delete…" }).click();
    const remove = page.getByRole("button", { name: "Delete", exact: true });
    await remove.waitFor();
    // From here on, time passes only as the test says: on a busy machine, ten seconds are soon over.
    await page.clock.pauseAt((await page.evaluate<number>("Date.now()")) + 20_000);
    await remove.click();
    await page.clock.runFor(1_000);
  };
  const row = page.locator(".thread");
  await removes();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await expect.poll(() => row.count()).toBe(0);
  await page.clock.runFor(8_000);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.clock.runFor(1_000);
  await row.waitFor();
  await page.clock.fastForward(20_000);
  expect((await fetch(`${url}/threads/one`)).status).toBe(200);
  await page.clock.resume();
  await removes();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await page.clock.resume();
  expect(await tab.barriers()).toEqual([]);
  await tab.screenshot("page-undo");
  await page.clock.fastForward(10_000);
  await expect.poll(async () => (await fetch(`${url}/threads/one`)).status).toBe(404);
  await page.getByRole("button", { name: "Undo" }).waitFor({ state: "detached" });
  expect(deleted).toEqual(["/threads/one"]);
});

/** A red pixel. */
const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);

test("a closed tab keeps the text and files of a message, and signing out deletes them", async () => {
  const { key } = newApiKey();
  const { url } = await startServer({
    config: { auth: { scheme: "api_key", bootstrap_key: key }, store: "sqlite" },
  });
  const tab = await seen(url);
  const signIn = async (page: Page) => {
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Skein" }).waitFor();
  };
  await signIn(tab.page);
  await field(tab.page).fill("Look at this");
  await tab.page
    .locator(".composer input[type=file]")
    .setInputFiles({ name: "red.png", mimeType: "image/png", buffer: PICTURE });
  await sees(tab.page, "red.png");
  await tab.page.getByRole("button", { name: "Enlarge red.png" }).click();
  await tab.page.getByRole("dialog").getByRole("img", { name: "red.png" }).waitFor();
  expect(await tab.barriers()).toEqual([]);
  await tab.page.keyboard.press("Escape");
  await tab.screenshot("messages-draft");

  const again = await tab.page.context().newPage();
  await tab.page.close();
  await again.goto(url);
  await signIn(again);
  await sees(again, "red.png");
  await expect.poll(() => field(again).inputValue()).toBe("Look at this");
  await again.goto(`${url}/#/settings`);
  await again.getByRole("button", { name: "Sign out" }).click();
  await signIn(again);
  await again.goto(`${url}/#/`);
  await again.getByRole("button", { name: "Attach files" }).waitFor();
  const left = [await field(again).inputValue(), await again.getByText("red.png").count()];
  expect(left).toEqual(["", 0]);
  tab.allowErrors("401");
});

test("text that a person had typed before editing a message is restored afterwards", async () => {
  const { url } = await startServer({ script: (_, call) => ({ say: `Answer ${call + 1}.` }) });
  await runs(url, "one", { input: "To Sweden." });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/t/one", "Answer 1.");
  await field(page).fill("Half a thought");
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Rewrite" }).click();
  await expect.poll(() => field(page).inputValue()).toBe("To Sweden.");
  await says(page, "To Norway.");
  await sees(page, "Answer 2.");
  await expect.poll(() => field(page).inputValue()).toBe("Half a thought");
});

test("a search result opens its message with the word marked, and Back and a reload return to the same position", async () => {
  const { url } = await startServer({
    script: (_, call) => ({
      say:
        call === 2
          ? "The **Needle** is here."
          : call === 6
            ? `${"Straw. ".repeat(30)}\n\n\`\`\`ts\nreturn straw.length;\n\`\`\``
            : "Straw. ".repeat(300),
    }),
  });
  for (let turn = 0; turn < 6; turn++) await runs(url, "hay", { input: `Turn ${turn}` });
  await runs(url, "other", { input: "Other" });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/", "New conversation");
  const isSeen = (text: string) =>
    expect.poll(() =>
      page.evaluate(`(() => {
        const at = [...document.querySelectorAll(".messages > article")].find((each) => each.textContent.includes(${JSON.stringify(text)}));
        const [box, inner] = [document.querySelector(".log"), at].map((each) => each?.getBoundingClientRect());
        return inner !== undefined && inner.top >= box.top - 1 && inner.top < box.bottom;
      })()`),
    );
  await page.getByLabel("Search titles and messages").fill("needle");
  await page.locator(".excerpt").click();
  await isSeen("Needle").toBe(true);
  const marked = `[...(CSS.highlights.get("found") ?? [])].map(String)`;
  await expect.poll(() => page.evaluate(marked)).toEqual(["Needle"]);
  await tab.screenshot("messages-hit");
  // Also in code, whose elements are others once it has its colours.
  await page.keyboard.press("Control+k");
  await page.keyboard.type("return straw.length");
  const hit = page.getByRole("option").filter({ hasText: "return straw.length" });
  await hit.waitFor();
  const isCut = `(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)(document.querySelector(".more-words"))`;
  await expect.poll(() => page.evaluate(isCut)).toBe(false);
  await hit.click();
  await page.locator(".code-keyword").waitFor();
  await expect.poll(() => page.evaluate(marked)).toEqual(["return straw.length"]);

  await tab.go("#/t/hay", "Turn 5");
  await page.locator(".log").focus();
  await page.keyboard.press("Home");
  await isSeen("Turn 0").toBe(true);
  await tab.go("#/t/other", "Other");
  await page.getByRole("article", { name: "You" }).filter({ hasText: "Other" }).waitFor();
  await page.goBack();
  await isSeen("Turn 0").toBe(true);
  await page.reload();
  await isSeen("Turn 0").toBe(true);

  await page.getByRole("article", { name: "You" }).first().hover();
  await page.evaluate(`navigator.clipboard.writeText = async (text) => { window.copied = text; }`);
  await page.getByRole("button", { name: "Copy link" }).first().click();
  await expect.poll(() => page.evaluate("String(window.copied)")).toMatch(/\/#\/t\/hay\/m\/msg_/);
  const link = await page.evaluate<string>("window.copied");
  await tab.go("#/t/other", "Other");
  await page.goto(link);
  await page.reload();
  await isSeen("Turn 0").toBe(true);
});

test("a conversation can be shared by a link, which others of the tenant can read until the share ends", async () => {
  const { url } = await startServer({
    config: { auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] } },
    script: [{ say: "It rains." }],
  });
  const as = (user: string, scopes: string) => ({
    "x-skein-tenant": "acme",
    "x-skein-user": user,
    "x-skein-scopes": scopes,
  });
  const run = await fetch(`${url}/threads/trip/runs`, {
    method: "POST",
    headers: { ...as("ada", "read,run"), "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ input: "The weather?" }),
  });
  await run.text();
  const opened = async (user: string, scopes: string) => {
    const tab = await seen(url);
    await tab.page.setExtraHTTPHeaders(as(user, scopes));
    await tab.page.reload();
    tab.allowErrors("401");
    return tab;
  };
  const ada = await opened("ada", "read,run");
  await ada.go("#/t/trip", "It rains.");
  await ada.page.getByRole("button", { name: "More" }).click();
  await ada.page.getByRole("button", { name: "Share…" }).click();
  await ada.page.getByRole("button", { name: "Create link" }).click();
  await ada.page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }");
  await ada.page.getByRole("dialog").getByRole("button", { name: "Copy link" }).click();
  await ada.page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await ada.barriers()).toEqual([]);
  await ada.screenshot("share-dialog");
  const link = await ada.page.evaluate<string>("window.copied");

  const bob = await opened("bob", "read");
  await bob.go(new URL(link).hash, "It rains.");
  await sees(bob.page, "Shared by ada");
  for (const theme of ["light", "dark"] as const)
    for (const width of [1280, 390]) {
      await bob.look({ theme, width, height: 800 });
      await bob.screenshot(`shared-${theme}-${width}`);
      expect(await bob.barriers()).toEqual([]);
    }
  await expect.poll(() => bob.page.getByRole("button", { name: /Rewrite|Retry|Fork|Send/ }).count()).toBe(0);

  await ada.page.getByRole("button", { name: "End", exact: true }).click();
  await sees(ada.page, "No link has been created.");
  await bob.page.reload();
  await sees(bob.page, "This link is no longer valid");
  bob.allowErrors("404");
});

test("an answer can be rated with a comment by keyboard, shows its rating after a reload, and the rating can be removed", async () => {
  const { url } = await startServer({ script: [{ say: "Norway is in the EU." }] });
  await runs(url, "one", { input: "Is it?" });
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/t/one", "Norway is in the EU.");
  const bad = page.getByRole("button", { name: "Bad answer" });
  await bad.press("Enter");
  const words = page.getByLabel("What could have been better?");
  await words.waitFor();
  // As people do it: none of it is a command of the keyboard, or a message.
  await page.keyboard.type("none. It is not.");
  for (const theme of ["light", "dark"] as const)
    for (const width of [1280, 390]) {
      await tab.look({ theme, width, height: 800 });
      await tab.screenshot(`page-rating-${theme}-${width}`);
      expect(await tab.barriers()).toEqual([]);
    }
  await page.keyboard.press("Enter");
  await words.waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate("document.activeElement.ariaLabel")).toBe("Bad answer");
  const kept = async () => (await json(`${url}/threads/one/feedback`)).items;
  await expect.poll(kept).toMatchObject([{ rating: "down", comment: "none. It is not." }]);

  await page.reload();
  await page.locator('button[aria-pressed="true"]', { has: page.locator(".thumb-shape") }).waitFor();
  await page.getByRole("button", { name: "Good answer" }).press("Enter");
  await page.getByRole("button", { name: "No comment" }).click();
  await expect.poll(kept).toMatchObject([{ rating: "up" }]);
  await page.getByRole("button", { name: "Good answer" }).click();
  await expect.poll(kept).toEqual([]);
});
