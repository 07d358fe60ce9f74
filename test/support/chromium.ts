// Chromium, in which a test opens pages as a person does: with layout, storage, and a browser's rules about origins.

import { execFileSync, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";
import { needing } from "./needing.ts";

const TOOLS = fileURLToPath(new URL("../../script/test-tools", import.meta.url));
/** Chromium without windows: the same engine, and a tab takes less than half of the processor time. */
const PROGRAM = "chromium-headless-shell";
const SCREENSHOTS = fileURLToPath(new URL("../../screenshots", import.meta.url));

const AXE = fileURLToPath(import.meta.resolve("axe-core/axe.min.js"));

/** What hangs ends before the test does, which then says what it waited for. */
const PATIENCE_MS = 140_000;

/** How a person sees a page. A tab begins light, 1280 × 720 pixels. */
export interface Look {
  readonly theme: "light" | "dark";
  readonly width: number;
  readonly height: number;
}

export interface TabOptions {
  /** Opens the tab in a context of its own. A test that changes the time needs one, because the change cannot be undone. */
  readonly ownContext?: boolean;
  /** Called before the page is loaded. */
  readonly before?: (page: Page) => Promise<void>;
}

export interface Tab {
  readonly page: Page;
  /**
   * Allows errors that contain one of the texts, from the beginning of the test to its end. Any other error that the page throws or logs
   * fails the test: the browser logs some only after the page shows their effect.
   */
  allowErrors(...texts: string[]): void;
  /** With `SCREENSHOTS=true`, writes a screenshot of the whole page to `screenshots/`, for people to look at. */
  screenshot(name: string): Promise<void>;
  look(look: Look): Promise<void>;
  /** What axe-core finds that keeps people from using the page as it is now, each as `rule: element`. */
  barriers(): Promise<string[]>;
}

/** The browser of this process, for all of its test files; it ends with the process. Undefined where there is none. */
const browser = await startBrowser();

/**
 * Contexts that no test uses at the moment. A page in each keeps the process in which the next test's page is opened, because starting a
 * process takes most of the time of opening a page.
 */
const idle: BrowserContext[] = [];

/** Tests that need it. */
export const { test } = needing(browser, "Chromium");

async function startBrowser(): Promise<Browser | undefined> {
  const { status } = spawnSync("sh", [TOOLS, PROGRAM], { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) return undefined;
  const executablePath = execFileSync("sh", ["-c", `command -v ${PROGRAM}`], { encoding: "utf8" }).trim();
  // All pages of a context share one process, including pages of different origins.
  const args = ["--renderer-process-limit=1", "--disable-site-isolation-trials"];
  return chromium.launch({ executablePath, args, timeout: PATIENCE_MS });
}

async function newContext(): Promise<BrowserContext> {
  if (!browser) throw new Error("There is no browser: the test is to be one that needs Chromium.");
  const context = await browser.newContext({ colorScheme: "light" });
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

/** Returns a context without pages of a test, cookies, storage and permissions. */
async function sharedContext(): Promise<BrowserContext> {
  const used = idle.pop();
  if (used) return used;
  const context = await newContext();
  // Its pages take their clock from it.
  Object.assign(context, { clock: new Proxy(context.clock, { get: refuseClock }) });
  await context.newPage();
  return context;
}

/** Removes what a test has left in a context, so that the next test can have it. */
async function release(context: BrowserContext, origin: string): Promise<void> {
  const [kept, ...others] = context.pages();
  if (!kept) return;
  await Promise.all(others.map((page) => page.close()));
  await Promise.all([context.clearCookies(), context.clearPermissions()]);
  const session = await context.newCDPSession(kept);
  await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
  await session.detach();
  idle.push(context);
}

/** A tab with storage of its own, closed when the test has finished. */
export async function openTab(url: string, { ownContext = false, before }: TabOptions = {}): Promise<Tab> {
  const context = await (ownContext ? newContext() : sharedContext());
  const page = await context.newPage();
  const errors: string[] = [];
  const allowed: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  onTestFinished(async ({ task }) => {
    // What a failed test has left is not known.
    const unexpected = errors.filter((error) => !allowed.some((text) => error.includes(text)));
    if (ownContext || unexpected.length > 0 || task.result?.state === "fail") await context.close();
    else await release(context, new URL(url).origin);
    expect(unexpected, `errors of the page: ${unexpected.join("; ")}`).toEqual([]);
  });
  await before?.(page);
  await page.goto(url);
  return {
    page,
    allowErrors: (...texts) => void allowed.push(...texts),
    async screenshot(name) {
      if (process.env.SCREENSHOTS !== "true") return;
      await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
    },
    look: async ({ theme, width, height }) => {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height });
    },
    barriers: () => barriersOf(page),
  };
}

function refuseClock(): never {
  throw new Error("The time of a shared context cannot be changed. Open the tab with `ownContext: true`.");
}

async function barriersOf(page: Page): Promise<string[]> {
  // Colors are wrong in the middle of a transition, for example after a change of the theme.
  await page.evaluate(
    `Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished)).then(() => {})`,
  );
  // Not as an element: the policy of a page may let in no script but its own.
  if (await page.evaluate("!window.axe")) await page.evaluate(await readFile(AXE, "utf8"));
  const found: { id: string; nodes: { html: string; failureSummary: string }[] }[] = await page.evaluate(
    `axe.run({ resultTypes: ["violations"] }).then(({ violations }) => JSON.parse(JSON.stringify(violations)))`,
  );
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
}
