// The page on a phone, and on paper.

import type { Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

const AGENTS = `
agents:
  assistant:
    model: "scripted:test"
    backend: { type: local }
    suggestions: [What can you do?]
  other:
    model: "scripted:test"
`;

/** A touch screen of 390 × 844. */
async function phone(url: string): Promise<Page> {
  const browser = (await seen(url)).page.context().browser();
  if (!browser) throw new Error("There is no browser.");
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    isMobile: true,
  });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

/** What a finger misses, or what a phone zooms into. */
const tooSmall = (page: Page) =>
  page.evaluate<
    string[]
  >(`[...document.querySelectorAll("button, select, textarea, input, .button, .places a")]
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width > 0)
    .flatMap((each) => {
      const { height } = each.getBoundingClientRect();
      const isField = each.matches("textarea, select, input:not([type=checkbox], [type=radio])");
      const isSmall = height < 40 && !each.matches("[type=checkbox], [type=radio]");
      const isZoomed = isField && parseFloat(getComputedStyle(each).fontSize) < 16;
      return isSmall || isZoomed ? [each.outerHTML.slice(0, 120) + " " + height] : [];
    })`);

test("on a touch screen, Enter adds a new line, fields do not zoom, and every control is large enough", async () => {
  const { url } = await startServer({ agents: AGENTS });
  await runs(url, "said", { input: "Hello." });
  const page = await phone(url);
  const field = page.getByLabel("Message", { exact: true });
  await field.waitFor();
  await expect.poll(() => page.evaluate("document.activeElement === document.body")).toBe(true);
  await page.getByRole("button", { name: "What can you do?" }).waitFor();
  await expect.poll(() => tooSmall(page)).toEqual([]);
  await field.tap();
  await page.keyboard.type("one");
  await page.keyboard.press("Enter");
  await page.keyboard.type("two");
  await expect.poll(() => field.inputValue()).toBe("one\ntwo");
  for (const [hash, text] of [
    ["#/t/said", "ok"],
    ["#/settings", "Colours"],
    ["#/runs", "Done"],
    ["#/agents/assistant", "assistant"],
  ] as const) {
    await page.evaluate(`location.hash = "${hash}"`);
    await page.getByText(text).filter({ visible: true }).first().waitFor();
    await expect.poll(() => tooSmall(page), { message: hash }).toEqual([]);
    await expect.poll(() => page.evaluate("document.documentElement.scrollWidth")).toBe(390);
  }
});

test("the tab in an address is visible, even if there are more tabs than fit", async () => {
  const { url } = await startServer({ agents: AGENTS });
  const page = await phone(`${url}/#/admin/usage`);
  const tab = page.getByRole("tab", { name: "Usage", selected: true });
  const isInside = async () => {
    const { x = -1, width = 0 } = (await tab.boundingBox()) ?? {};
    return x >= 0 && x + width <= 390;
  };
  await expect.poll(isInside).toBe(true);
});

test("Back closes a drawer and stays on the page; a link in it continues from where it was opened", async () => {
  const { url } = await startServer({ agents: AGENTS });
  await runs(url, "said", { input: "Hello." });
  const page = await phone(url);
  const drawer = page.getByRole("dialog");
  const open = () => page.getByRole("button", { name: "Threads and pages" }).tap();
  await open();
  await drawer.waitFor();
  await page.goBack();
  await drawer.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "New conversation" }).waitFor();

  await open();
  await drawer.getByRole("link", { name: "Hello." }).tap();
  await page.getByLabel("Messages").getByText("ok").waitFor();
  await expect.poll(() => drawer.count()).toBe(0);
  await page.getByRole("button", { name: "Details" }).tap();
  await drawer.getByRole("tab", { name: "Files" }).tap();
  await expect.poll(() => page.evaluate("location.hash")).toBe("#/t/said/files");
  await expect.poll(() => drawer.count()).toBe(1);
  await page.goBack();
  await drawer.waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate("location.hash")).toBe("#/t/said");
  await page.goBack();
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
});

test("the address of a conversation's part opens it in the drawer, and Back leads to the conversation", async () => {
  const { url } = await startServer({ agents: AGENTS });
  await runs(url, "said", { input: "Hello." });
  const page = await phone(`${url}/#/t/said/trace`);
  const drawer = page.getByRole("dialog");
  const shows = (name: string) => drawer.getByRole("tab", { name, selected: true }).waitFor();
  await shows("Trace");
  await page.reload();
  await shows("Trace");
  await page.goBack();
  await drawer.waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate("location.hash")).toBe("#/t/said");
  await page.evaluate(`location.hash = "#/t/said/files"`);
  await shows("Files");
  await drawer.getByRole("tab", { name: "Events" }).tap();
  await shows("Events");
  await page.goBack();
  await drawer.waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate("location.hash")).toBe("#/t/said");
  const overlap = `(() => {
    const heading = document.querySelector("main h1");
    heading.tabIndex = -1;
    heading.focus({ focusVisible: true });
    const { outlineOffset, outlineWidth } = getComputedStyle(heading);
    const ring = heading.getBoundingClientRect().bottom + parseFloat(outlineOffset) + parseFloat(outlineWidth);
    return ring - document.querySelector("main .summary").getBoundingClientRect().top;
  })()`;
  await expect.poll(() => page.evaluate(overlap)).toBeLessThanOrEqual(0.5);
});

test("the page can be installed: its manifest and icons exist, behind a path prefix too", async () => {
  const { url } = await startServer();
  const html = await (await fetch(url)).text();
  const manifestUrl = new URL(/rel="manifest" href="([^"]+)"/.exec(html)?.[1] ?? "", `${url}/`);
  const answer = await fetch(manifestUrl);
  expect(answer.headers.get("content-type")).toBe("application/manifest+json");
  const manifest = (await answer.json()) as {
    start_url: string;
    icons: readonly { src: string; type: string }[];
  };
  expect(new URL(manifest.start_url, manifestUrl).href).toBe(`${url}/`);
  for (const { src, type } of manifest.icons) {
    const icon = await fetch(new URL(src, manifestUrl));
    expect([src, icon.status, icon.headers.get("content-type")]).toEqual([src, 200, type]);
  }
  const { page, harm } = await seen(url);
  const session = await page.context().newCDPSession(page);
  const { errors, url: read } = await session.send("Page.getAppManifest");
  expect([errors, read]).toEqual([[], manifestUrl.href]);
  expect(await harm()).toEqual([]);
});

test("a printed page contains only the conversation, dark on light, with its cards open", async () => {
  const { url } = await startServer({
    agents: AGENTS,
    script: [
      { say: "Looking.", call: [{ tool: "execute", args: { command: "echo $((6 * 7))" } }] },
      {
        say: `Seen in [the list](out/list.md)[^1].\n\n|${" a name |".repeat(9)}\n|${"---|".repeat(9)}\n|${" some more words |".repeat(9)}\n\n[^1]: A note.`,
      },
    ],
  });
  await runs(url, "said", { input: "Look." });
  const { page, go } = await seen(url);
  await page.evaluate(`localStorage.setItem("skein.theme", "dark")`);
  await page.reload();
  await go("#/t/said", "Seen in");
  await page.emulateMedia({ media: "print" });
  await expect.poll(() => page.evaluate("getComputedStyle(document.body).colorScheme")).toBe("light");
  await page.evaluate(`dispatchEvent(new Event("beforeprint"))`);
  await page.getByText(/^42\n/).waitFor();
  for (const name of ["navigation", "complementary", "textbox"] as const)
    await expect
      .poll(() => page.getByRole(name).filter({ visible: true }).count(), { message: name })
      .toBe(0);
  await expect
    .poll(() => page.getByRole("button").filter({ visible: true }).allInnerTexts())
    .toEqual(["the list", "1"]);
  await page.setViewportSize({ width: 794, height: 1123 });
  await expect
    .poll(() => page.evaluate(`document.querySelector("table").getBoundingClientRect().right <= innerWidth`))
    .toBe(true);
  await expect
    .poll(() => page.evaluate(`getComputedStyle(document.querySelector(".log")).overflow`))
    .toBe("visible");
  await page.evaluate(`dispatchEvent(new Event("afterprint"))`);
  await page.getByText(/^42\n/).waitFor({ state: "detached" });
});
