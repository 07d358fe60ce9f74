// The documentation as a site. A dead link or a page that no list has fails its build.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { openTab, test as testInChromium } from "../support/chromium.ts";
import { freePort } from "../support/free-port.ts";

const SITE = fileURLToPath(new URL("../../packages/site/", import.meta.url));

test("the documentation builds as a site that can be searched", () => {
  const { status, stdout, stderr } = spawnSync("npm", ["run", "build"], { cwd: SITE, encoding: "utf8" });
  expect(status, stdout + stderr).toBe(0);
  expect(
    globSync("dist/{start,guides,reference,concepts,contributing}/index.html", { cwd: SITE }),
  ).toHaveLength(5);
  const [index = ""] = globSync("dist/assets/chunks/@localSearchIndexroot*.js", { cwd: SITE });
  const words = readFileSync(`${SITE}${index}`, "utf8");
  for (const word of ["summarization", "langgraph", "retention"]) expect(words).toContain(word);
  expect(readFileSync(`${SITE}dist/llms.txt`, "utf8")).toContain(
    "- [Run Skein](/start/run-skein): In ten minutes ",
  );
}, 600_000);

testInChromium(
  "a page draws its diagram, even in dark mode, and a search finds tasks before background",
  async () => {
    const port = await freePort();
    const server = spawn("npx", ["vitepress", "preview", "--port", String(port)], {
      cwd: SITE,
      detached: true,
    });
    onTestFinished(() => void (server.pid && process.kill(-server.pid)));
    await once(server.stdout, "data");
    const { page, look } = await openTab(`http://127.0.0.1:${port}/concepts/leases`);
    await page.waitForSelector(".diagram svg");
    await look({ theme: "dark", width: 390, height: 844 });
    await page.waitForSelector("html.dark .diagram svg");
    await expect.poll(() => page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    await page.keyboard.press("Control+k");
    await page.fill(".search-input", "resume a stream");
    const first = page.locator(".results .result").first();
    await expect.poll(() => first.getAttribute("href")).toContain("/guides/resume-a-stream");
  },
);
