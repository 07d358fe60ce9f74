// Draws the icons of an installed page in src/page/icons/ from its mark, in Chromium:  page-icons.ts

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { iconOf } from "../src/page/mark.ts";

const OUT = fileURLToPath(new URL("../src/page/icons", import.meta.url));

/** The name, size and corner radius. Systems that crop icons themselves get a full square. */
const ICONS = [
  ["icon-192", 192, 7],
  ["icon-512", 512, 7],
  ["icon-maskable-512", 512, 0],
  ["icon-apple-180", 180, 0],
] as const;

const executablePath = execFileSync("sh", ["-c", "command -v chromium-headless-shell"], { encoding: "utf8" });
const browser = await chromium.launch({ executablePath: executablePath.trim() });
for (const [name, size, round] of ICONS) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(
    `<style>body{margin:0}svg{display:block;width:${size}px}</style>${iconOf({ round })}`,
  );
  await page.screenshot({ path: `${OUT}/${name}.png`, omitBackground: true });
}
await browser.close();
