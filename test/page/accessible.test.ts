import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { type Tab, test } from "../support/chromium.ts";
import { isNightly, sampled } from "../support/seed.ts";
import { startServer } from "../support/server.ts";
import { furnished, VIEWS } from "./furnished.ts";
import { type Seen, seen } from "./seen.ts";

/** A width has no colours, and a theme no widths: two looks have all of both. */
const LOOKS = [
  { theme: "light", width: 1280, height: 800 },
  { theme: "dark", width: 390, height: 800 },
] as const;

/** Many views, one after the other. */
const LONG_MS = 900_000;

let looks = 0;

/** Checks what the tab shows in both looks at night. Otherwise the views take turns: one is light and wide, the next dark and narrow. */
async function hasNoBarriers(tab: Tab, name: string): Promise<void> {
  const turn = looks++ % LOOKS.length;
  for (const look of LOOKS.filter((_, index) => isNightly || index === turn)) {
    await tab.look(look);
    await tab.screenshot(["page", ...name.split(" "), look.theme, look.width].join("-"));
    expect({ name, look, barriers: await tab.barriers() }).toEqual({ name, look, barriers: [] });
    await expect.poll(() => tab.page.evaluate("document.documentElement.scrollWidth")).toBe(look.width);
  }
}

/** What opens over or in a view: where, what it shows, and how it is opened on a narrow screen. */
const OPENED: Readonly<
  Record<string, readonly [hash: string, text: string, open: (page: Page) => Promise<void>, shown: string]>
> = {
  "the list of keys": ["#/", "New conversation", openKeys, "Use single-letter shortcuts"],
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
  "the search of everything": [
    "#/",
    "New conversation",
    (page) => page.keyboard.press("Control+k"),
    "Search everything",
  ],
  "the reply to a question": [
    "#/inbox",
    "ls -la",
    (page) => page.getByRole("button", { name: "Deny, because…" }).click(),
    "Why not?",
  ],
  "a schedule and the form for it": [
    "#/schedules",
    "briefing",
    async (page) => {
      await page.getByText("briefing", { exact: true }).click();
      await page.getByRole("button", { name: "Edit briefing" }).click();
      await page.getByText("More settings").click();
    },
    "Asia/Kathmandu",
  ],
  "a trigger and the form for another": [
    "#/schedules/triggers",
    "issues",
    async (page) => {
      await page.getByText("issues", { exact: true }).click();
      await page.getByRole("button", { name: "New trigger" }).click();
      await page.getByText("Try it").click();
    },
    "Deliveries appear here",
  ],
  "a connection and the form for another": [
    "#/tools/connections",
    "calendar",
    async (page) => {
      await page.getByText("calendar", { exact: true }).click();
      await page.getByRole("button", { name: "Add a token" }).click();
    },
    "The token is sent to this address only.",
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
  /** Each is loaded by itself: the text of a view may be in the one before it. */
  const loaded = async (tab: Seen, url: string, hash: string, text: string | RegExp) => {
    await tab.look(LOOKS[0]);
    await tab.page.goto("about:blank");
    await tab.page.goto(url);
    await tab.go(hash, text);
  };

  test(
    "the views",
    async () => {
      const { url, run } = await furnished();
      const tab = await seen(url);
      for (const [view, [hash, text]] of sampled(Object.entries(VIEWS), 2)) {
        await loaded(tab, url, hash.replaceAll("RUN", run), text);
        await hasNoBarriers(tab, view);
      }
    },
    LONG_MS,
  );

  test(
    "what opens in a view",
    async () => {
      const { url, run } = await furnished();
      const tab = await seen(url);
      for (const [name, [hash, text, open, shown]] of sampled(Object.entries(OPENED), 2)) {
        await loaded(tab, url, hash.replaceAll("RUN", run), text);
        await open(tab.page);
        await tab.page.getByText(shown).filter({ visible: true }).first().waitFor();
        await hasNoBarriers(tab, name);
      }
    },
    LONG_MS,
  );

  test("the drawers of a narrow screen", async () => {
    const { url } = await furnished();
    const tab = await seen(url);
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
    const tab = await seen(url);
    await tab.page.getByRole("button", { name: "Sign in" }).waitFor();
    await hasNoBarriers(tab, "the form for a key");
    tab.allowErrors("401");
  });
});
