// Films the page in Chromium for the README: demo-picture.ts [FILE]. Shows a run with a tool and an approval, and kills
// and restarts the server in the middle of an answer. Everything is real except the model, which is a script.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { z } from "zod";
import { createClient } from "../src/client/client.ts";
import { type GifFrame, gifOf } from "./gif.ts";
import { buildPage } from "./page-build.ts";
import { launchBrowser, type PictureServer, startServer } from "./picture-server.ts";

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const out = process.argv[2] ?? path("docs/images/demo.gif");

/** The maximum size in bytes. The README is read over slow connections, and the file stays in the repository's history. */
const MAX_BYTES = 2_000_000;
const WIDTH = 960;
const PAGE_HEIGHT = 500;
const CAPTION_HEIGHT = 44;
const TERMINAL_HEIGHT = 96;
const HEIGHT = CAPTION_HEIGHT + PAGE_HEIGHT + TERMINAL_HEIGHT;
/** The maximum time to show an unchanged picture, even on a slow machine, unless it is held on purpose. */
const LONGEST_MS = 900;

const AGENTS = {
  agents: {
    support: {
      description: "Answers customers",
      model: "scripted:refund.yaml",
      backend: { type: "local" },
      hooks: {
        permissions: { rules: [{ allow: "read_file" }, { ask: "execute" }] },
      },
    },
  },
};
const SCRIPT = [
  { say: "I read the order first.", delay_ms: 60, call: [{ tool: "read_file", args: { path: "4711.txt" } }] },
  {
    say: "The parcel was lost and the order is paid. I ask before I send money.",
    delay_ms: 60,
    call: [{ tool: "execute", args: { command: "sh refund.sh 4711 42.50" } }],
  },
  {
    say: "Done: **42.50 €** are on their way back to Ada.\n\n- **Order 4711** was paid on 3 March and sent on the 4th.\n- **The carrier** lost the parcel on the 6th and has confirmed it.\n- **The refund** has the number R-2093 and arrives within three days.\n\nShall I send the number to Ada, with an apology and the date on which the money arrives?",
    delay_ms: 75,
  },
];
const FILES = {
  "4711.txt": "Order 4711, Ada Byron, 42.50 EUR, paid 3 March\nParcel: LOST on 6 March\n",
  "refund.sh": 'echo "refund R-2093: order $1, $2 EUR to the card that paid"\n',
};

/** Runs in the browser. */
const DRAW = `async ({ png, caption, terminal }) => {
  const context = new OffscreenCanvas(${WIDTH}, ${HEIGHT}).getContext("2d", { willReadFrequently: true });
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  context.fillStyle = "#10151c";
  context.fillRect(0, 0, ${WIDTH}, ${HEIGHT});
  context.drawImage(image, 0, ${CAPTION_HEIGHT});
  context.fillStyle = "#ffffff";
  context.font = "600 19px sans-serif";
  context.fillText(caption, 18, ${CAPTION_HEIGHT - 15});
  context.font = "16px monospace";
  context.fillStyle = "#9fe3a5";
  for (const [line, text] of terminal.entries()) context.fillText(text, 18, ${CAPTION_HEIGHT + PAGE_HEIGHT + 28} + line * 25);
  const { data } = context.getImageData(0, 0, ${WIDTH}, ${HEIGHT});
  let bytes = "";
  for (let at = 0; at < data.length; at += 8192) bytes += String.fromCharCode(...data.subarray(at, at + 8192));
  return btoa(bytes);
}`;

interface Frame {
  readonly png: Buffer;
  readonly caption: string;
  readonly terminal: readonly string[];
  /** The time when the picture was taken, and how much longer to show it. */
  readonly at: number;
  held: number;
}

const folder = mkdtempSync(join(tmpdir(), "skein-demo-"));
let browser: Browser | undefined;
let server: PictureServer | undefined;
try {
  await buildPage(path("dist/page"));
  writeFileSync(join(folder, "refund.yaml"), JSON.stringify(SCRIPT));
  server = await startServer(folder, AGENTS);
  const client = createClient({ baseUrl: server.url });
  for (const [name, text] of Object.entries(FILES))
    await client.files.write(name, text, { agent: "support" });
  browser = await launchBrowser();
  const page = await browser.newPage({ viewport: { width: WIDTH, height: PAGE_HEIGHT } });
  await page.goto(`${server.url}/#/`);
  const frames = await film(page, server.url);
  const canvas = await browser.newPage();
  const drawings: GifFrame[] = [];
  for (const [index, frame] of frames.entries())
    drawings.push({ points: await drawn(frame, canvas), ms: shownFor(frames, index) });
  const gif = gifOf(drawings, WIDTH, HEIGHT);
  writeFileSync(out, gif);
  const seconds = drawings.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  console.log(
    `${out}: ${frames.length} frames, ${seconds.toFixed(1)} s, ${Math.round(gif.length / 1000)} kB`,
  );
  if (gif.length > MAX_BYTES) throw new Error(`${out} has more than ${MAX_BYTES} bytes.`);
} finally {
  await browser?.close();
  await server?.end("SIGTERM");
  rmSync(folder, { recursive: true, force: true });
}

/** Plays the story and returns its pictures. */
async function film(page: Page, url: string): Promise<Frame[]> {
  const frames: Frame[] = [];
  let caption = "One of your users, and an agent on your server";
  let terminal = ["$ skein serve", `  Skein serves on ${url}`];
  let isOver = false;
  const take = async () => {
    const shown = { caption, terminal };
    const png = await page.screenshot();
    const last = frames.at(-1);
    if (last?.png.equals(png) && last.caption === shown.caption && last.terminal === shown.terminal) return;
    frames.push({ png, ...shown, at: performance.now(), held: 0 });
  };
  const camera = (async () => {
    while (!isOver) await take();
  })();
  const hold = async (ms: number) => {
    await take();
    const last = frames.at(-1);
    if (last) last.held += ms;
  };

  const input = page.getByRole("textbox", { name: "Message" });
  await hold(900);
  await input.pressSequentially("Parcel 4711 never arrived. Please refund Ada.", { delay: 25 });
  await hold(300);
  await input.press("Enter");
  caption = "The agent reads a file in that user's workspace …";
  const allow = page.getByRole("button", { name: /^Allow/ });
  await allow.waitFor();
  caption = "… and asks a person before it sends money";
  await hold(1_800);
  await allow.click();
  caption = "Approved: the command runs, and the answer streams";
  await page.getByText("has the number").waitFor();
  terminal = [`$ kill -9 ${server?.pid}`, "  Killed"];
  caption = "kill -9, in the middle of the answer";
  await server?.end("SIGKILL");
  await hold(2_200);
  terminal = [...terminal, "$ skein serve"];
  caption = "Start it again …";
  server = await startServer(folder, AGENTS, new URL(url).port);
  terminal = ["  Killed", "$ skein serve", `  Skein serves on ${url}`];
  caption = "… and the run continues. The page has reconnected by itself";
  await page.getByText("the money arrives?").waitFor();
  caption = "The answer is complete, and the refund ran once";
  await hold(3_500);
  isOver = true;
  await camera;
  return frames;
}

function shownFor(frames: readonly Frame[], index: number): number {
  const { at = 0, held = 0 } = frames[index] ?? {};
  const next = frames[index + 1];
  return held + (next ? Math.min(next.at - at, LONGEST_MS) : 0);
}

/** Returns a frame with its caption above and the terminal below, as points of four bytes. */
async function drawn({ png, caption, terminal }: Frame, page: Page): Promise<Uint8Array> {
  const shown = { png: png.toString("base64"), caption, terminal };
  const points = z.string().parse(await page.evaluate(`(${DRAW})(${JSON.stringify(shown)})`));
  return new Uint8Array(Buffer.from(points, "base64"));
}
