// How the page looks, at each width and in each language: what can be measured of it.

import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { sampled } from "../support/seed.ts";
import { startServer } from "../support/server.ts";
import { furnished, VIEWS } from "./furnished.ts";
import { runs, seen } from "./seen.ts";

const SIZES = [
  [1440, 900],
  [1280, 800],
  [1024, 768],
  [390, 844],
] as const;

/** Boxes that scroll sideways by accident, controls that lie over each other or outside of the window, titles that are cut, and amounts that are torn. */
const faults = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const all = (what) => [...document.querySelectorAll(what)].filter((each) => each.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }) && each.getBoundingClientRect().width > 1);
    const named = (each) => each.tagName + "." + each.className + " " + each.textContent.slice(0, 40);
    const lines = (each) => {
      const range = document.createRange();
      range.selectNodeContents(each);
      return new Set([...range.getClientRects()].map(({ top }) => Math.round(top / 8))).size;
    };
    const boxes = all("main, .body, .log, .messages, aside, aside > .tabs, .tab-panel, .bar, nav.column, .threads, table");
    const controls = all("button:not(.jump), select, [role=tab], .places a").filter((each) => !each.closest("[class=skip]"));
    const overlap = (a, b) => {
      const [one, two] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
      return Math.min(one.right, two.right) - Math.max(one.left, two.left) > 1 && Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) > 1;
    };
    const touching = controls.filter((each) => !each.closest(".thread"));
    return [
      ...boxes.filter((each) => each.scrollWidth > each.clientWidth + 1 && ["auto", "scroll"].includes(getComputedStyle(each).overflowX)).map((each) => "scrolls sideways: " + named(each)),
      ...(document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : []),
      ...touching.flatMap((one, at) => touching.slice(at + 1).filter((two) => one.parentElement === two.parentElement && overlap(one, two)).map((two) => named(one) + " lies over " + named(two))),
      ...controls.filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".tabs")).map((each) => "outside: " + named(each)),
      ...all("main h1").filter((each) => each.clientWidth < 100 && each.scrollWidth > each.clientWidth).map((each) => "cut: " + named(each)),
      ...all("td.number, td time, .much, [role=tab]").filter((each) => lines(each) > 1 && getComputedStyle(each).writingMode === "horizontal-tb").map((each) => "torn: " + named(each)),
    ];
  })()`);

/** Resolves when nothing has been drawn for a moment. */
const STILL = `new Promise((resolve) => {
  let timer = setTimeout(resolve, 250);
  new MutationObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(resolve, 250);
  }).observe(document.body, { childList: true, subtree: true });
})`;

interface Box {
  readonly right: number;
}

describe("nothing is cut off, broken or overlapping, wide and narrow:", () => {
  // German words are longer than English ones.
  for (const language of sampled(["de", "en"], 2))
    test(`in the language ${language}`, async () => {
      const { url, run } = await furnished();
      const tab = await seen(url);
      const { page } = tab;
      await page.evaluate(`localStorage.setItem("skein.language", "${language}")`);
      await page.reload();
      for (const [view, [hash]] of sampled(Object.entries(VIEWS), 2)) {
        await page.evaluate(`location.hash = ${JSON.stringify(hash.replaceAll("RUN", run))}`);
        await page.evaluate(STILL);
        for (const [width, height] of SIZES) {
          await tab.look({ theme: "light", width, height });
          await tab.screenshot(["looks", language, ...view.split(" "), width].join("-"));
          // What is still being drawn may be wrong for a moment.
          await expect.poll(() => faults(page), { message: `${view}, ${width}` }).toEqual([]);
        }
      }
    }, 900_000);
});

test("on a phone, the send button is at the end of the line of choices, or of its own line", async () => {
  const { url } = await startServer();
  const tab = await seen(url);
  await tab.page.getByRole("button", { name: "Send" }).waitFor();
  for (const width of [390, 320]) {
    await tab.look({ theme: "light", width, height: 800 });
    const room = async () => {
      const [box, button, all] = await tab.page.evaluate<[Box, Box, number]>(
        `[...[".composer .box", ".composer .primary"].map((each) => document.querySelector(each).getBoundingClientRect().toJSON()), innerWidth]`,
      );
      return { width: all, isAtTheEnd: box.right - button.right < 12 };
    };
    await expect.poll(room).toEqual({ width, isAtTheEnd: true });
  }
});

test("a missing conversation shows an error and a link to the start, and offers nothing else", async () => {
  const { url } = await startServer();
  const tab = await seen(url);
  const { page } = tab;
  await tab.go("#/t/nowhere", "Conversation not found");
  await expect.poll(() => page.getByText("Connecting…").count()).toBe(0);
  await expect.poll(() => page.getByRole("tab").count()).toBe(0);
  await expect.poll(() => page.getByRole("button", { name: "Details" }).count()).toBe(0);
  await page.getByRole("link", { name: "Go to the home page" }).click();
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
  tab.allowErrors("404");
});

test("a conversation first opened without a connection shows the outage, and appears once the server is back", async () => {
  const { url } = await startServer({ script: () => ({ say: "Short." }) });
  await runs(url, "one", { input: "First." });
  await runs(url, "two", { input: "Second." });
  const { page, go, allowErrors } = await seen(url);
  await go("#/t/one", "Short.");
  await page.context().setOffline(true);
  await go("#/t/two", "The conversation will appear when the server is back");
  await page.context().setOffline(false);
  await page.getByRole("article", { name: "You" }).getByText("Second.").waitFor();
  allowErrors("net::ERR_");
});

test("the side of a conversation takes no space while it has nothing to show", async () => {
  const { url } = await startServer({ script: [{ say: "Short." }] });
  await runs(url, "one", { input: "Go." });
  const tab = await seen(url);
  await tab.look({ theme: "light", width: 1440, height: 900 });
  await tab.go("#/t/one", "Short.");
  const width = () => tab.page.evaluate<number>(`document.querySelector("aside.details").offsetWidth`);
  await expect.poll(() => width()).toBeLessThan(60);
  await tab.page.getByRole("tab", { name: "Files" }).click();
  await expect.poll(width).toBeGreaterThan(250);
  await tab.page.getByText("files that you upload or drop, appear here").waitFor();
});

test("a plan leaves space for the conversation's text: on a small screen it is a drawer, opened by its name", async () => {
  const { url } = await furnished();
  const tab = await seen(url);
  const { page } = tab;
  await tab.look({ theme: "light", width: 1024, height: 768 });
  await tab.go("#/t/full", "Done");
  const width = () => page.evaluate<number>(`document.querySelector(".messages").offsetWidth`);
  await expect.poll(() => width()).toBeGreaterThan(640);
  await page.getByRole("tab", { name: "Todos 0/1" }).click();
  await page.getByRole("dialog", { name: "Details" }).getByText("Begin").waitFor();
  await tab.screenshot("page-side-drawer");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // The browser goes back in its history after the drawer has closed.
  await expect.poll(() => page.evaluate("location.hash")).toBe("#/t/full");
  await tab.look({ theme: "light", width: 1280, height: 768 });
  await page.locator("aside.details").getByText("Begin").waitFor();
});

test("an overlong line stays within its card, cell and window", async () => {
  const long = (of: string) => of.repeat(2000);
  const table = `|${" a |".repeat(40)}\n|${"---|".repeat(40)}\n|${" 1234567 |".repeat(40)}`;
  const words = `| a | b | c |\n|---|---|---|\n| 1 | ${long("W").slice(0, 90)} | ${long("7").slice(0, 90)} |`;
  const name = "a".repeat(64);
  const { url } = await startServer({
    agents: `agents: { assistant: { model: "scripted:test", backend: { type: local } }, ${name}: { model: "scripted:test" } }`,
    script: [
      {
        say: [
          long("A"),
          `\`${long("y")}\``,
          `\`\`\`\n${long("x")}\n\`\`\``,
          `Z${long("\u0301")}`,
          `https://example.com/${long("p")}`,
          "مرحبا بالعالم ".repeat(40),
          table,
          words,
        ].join("\n\n"),
        call: [
          { tool: long("t").slice(0, 60), args: { [long("k")]: long("v"), "<b>html</b>": "<img src=x>" } },
          { tool: "write_file", args: { path: `${long("n").slice(0, 150)}.md`, content: long("c") } },
        ],
      },
      { say: "Done." },
      { say: "Well", fail: { code: "model_rejected", message: long("E") } },
    ],
  });
  await runs(url, "long", { input: `${long("Q")} مرحبا` });
  await runs(url, "failed", { input: "Fail." });
  const tab = await seen(url);
  await tab.go("#/t/long", "Done.");
  await tab.page.evaluate(STILL);
  for (const [width, height] of SIZES) {
    await tab.look({ theme: "light", width, height });
    await tab.screenshot(`looks-long-${width}`);
    const wide = () =>
      tab.page.evaluate<string[]>(
        `[...document.querySelectorAll(".messages, .messages > *, .card .inside, .card b:has(+ .fits), .arguments, .markdown :is(td, th)")]
          .filter((each) => each.scrollWidth > each.clientWidth + 1)
          .map((each) => each.className + " " + each.scrollWidth + " > " + each.clientWidth)`,
      );
    await expect
      .poll(async () => ({ width, wide: await wide(), faults: await faults(tab.page) }))
      .toEqual({ width, wide: [], faults: [] });
    await tab.go("#/runs", "Failed");
    await tab.page.getByRole("option", { name }).waitFor({ state: "attached" });
    await tab.screenshot(`looks-long-runs-${width}`);
    const heights = () =>
      tab.page.evaluate<number[]>(
        `[...document.querySelectorAll(".runs .problem")].map((each) => each.clientHeight)`,
      );
    await expect
      .poll(async () => {
        const [problem = 999] = await heights();
        return { width, isShort: problem < 90, faults: await faults(tab.page) };
      })
      .toEqual({ width, isShort: true, faults: [] });
    await tab.go("#/t/long", "Done.");
    await tab.page.evaluate(STILL);
  }
});

test("the button to the end is offered only while something is below the visible part", async () => {
  const { url } = await startServer({ script: () => ({ say: "Short." }) });
  await runs(url, "one", { input: "Go." });
  const { page, go } = await seen(url);
  await go("#/t/one", "Short.");
  await page.getByRole("article", { name: "You" }).hover();
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("2/2").waitFor();
  await page.getByRole("button", { name: "Previous version" }).click();
  await page.getByText("1/2").waitFor();
  await page.evaluate(STILL);
  const toEnd = page.getByRole("button", { name: "Go to the end" });
  await expect.poll(() => toEnd.count()).toBe(0);
  await page.setViewportSize({ width: 1280, height: 260 });
  await toEnd.waitFor();
});
