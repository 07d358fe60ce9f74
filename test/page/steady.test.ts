// What is drawn stays where it is while the rest arrives.

import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { test } from "../support/chromium.ts";
import { startServer } from "../support/server.ts";
import { runs, seen } from "./seen.ts";

/** From which on a person notices it, as browsers count: the share of the screen that moved, by how far it moved. */
const NOTICED = 0.05;

const AGENTS = `
agents:
  assistant: { model: "scripted:test", tools: [current_datetime], permissions: { rules: [{ ask: current_datetime }] } }
`;
const ANSWER = `# Done

\`\`\`ts
const a = 1;
\`\`\`

| a | b |
|---|---|
| 1 | 2 |

${"More of the answer. ".repeat(40)}`;

/** How much moved while the page was loaded at the address, and what. `last` comes last. */
async function movedAt(page: Page, address: string, last: string): Promise<readonly [number, string]> {
  await page.goto("about:blank");
  await page.goto(address);
  for (const each of [last, ".demo-note"]) await page.locator(each).last().waitFor();
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  return page.evaluate<[number, string]>("[window.moved.sum, window.moved.what.join('; ')]");
}

const observe = (page: Page) =>
  page.addInitScript(`
    window.moved = { sum: 0, what: [] };
    const nameOf = ({ node }) => node?.className || node?.nodeName;
    new PerformanceObserver((list) => {
      for (const { value, sources } of list.getEntries()) {
        moved.sum += value;
        moved.what.push(value.toFixed(3) + " " + sources.map(nameOf).join(", "));
      }
    }).observe({ type: "layout-shift", buffered: true });
  `);

describe("on a slow network", () => {
  test("the start and an opened conversation do not shift drawn content, at each width", async () => {
    const { url } = await startServer({
      agents: AGENTS,
      script: ({ messages }) => {
        const last = messages.at(-1);
        if (last?.role !== "user") return { say: ANSWER };
        const asked = JSON.stringify(last);
        if (asked.includes("Ask")) return { say: "May I?", call: [{ tool: "current_datetime", args: {} }] };
        if (!asked.includes("Plan")) return { say: ANSWER };
        const todos = [{ id: "1", title: "Begin", status: "in_progress" }];
        return { say: "First the plan.", call: [{ tool: "write_todos", args: { todos } }] };
      },
    });
    for (let at = 0; at < 5; at++) await runs(url, "plain", { input: `Question ${at}` });
    for (let at = 0; at < 5; at++) await runs(url, "planned", { input: `Plan ${at}` });
    for (const input of ["Plan it", "Ask me"]) await runs(url, "asks", { input });
    const { page } = await seen(url);
    await observe(page);
    const network = await page.context().newCDPSession(page);
    await network.send("Network.emulateNetworkConditions", {
      ...{ offline: false, latency: 100, downloadThroughput: 200_000, uploadThroughput: 200_000 },
    });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 800 });
      for (const [hash, last] of [
        ["#/", ".welcome"],
        ["#/t/plain", ".code-keyword"],
        ["#/t/planned", ".code-keyword"],
        ["#/t/asks", ".questions"],
      ] as const) {
        const [moved, what] = await movedAt(page, `${url}/${hash}`, last);
        expect.soft(moved, `${hash} at ${width}: ${what}`).toBeLessThan(NOTICED);
      }
    }
  });

  test("the name appears before the scripts and styles of the views", async () => {
    const { url } = await startServer({});
    const { page } = await seen(url);
    const shell = page.locator(".shell").getByText("Skein");
    await page.route(/\/page\/(style|page|chunk)-/, () => {});
    await page.goto("about:blank");
    await page.goto(url, { waitUntil: "commit" });
    await shell.waitFor();
    const painted = () => page.evaluate("performance.getEntriesByName('first-contentful-paint').length");
    await expect.poll(painted).toBe(1);
    expect((await page.locator(".shell svg").boundingBox())?.width).toBeLessThan(40);
  });
});
