// Takes the pictures of the page in docs/images/, in Chromium: page-pictures.ts [FOLDER]. The server uses the demo
// script and a script for this purpose.

import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { createClient } from "../src/client/client.ts";
import { buildPage } from "./page-build.ts";
import { launchBrowser, startServer } from "./picture-server.ts";

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const out = process.argv[2] ?? path("docs/images");

/** The maximum size in bytes. Pictures are read over slow connections and stay in the repository's history. */
const MAX_BYTES = 150_000;

const AGENTS = {
  plugins: [path("config/project/my-plugin.ts")],
  agents: {
    assistant: {
      description: "Plans, writes files and runs commands in a workspace of its own",
      model: "scripted:demo",
      backend: { type: "local" },
    },
    helper: {
      description: "Rolls dice, and asks before it does",
      model: "scripted:dice.yaml",
      tools: ["roll_dice"],
      hooks: { permissions: { rules: [{ ask: "roll_dice" }] } },
    },
    editor: {
      description: "Changes what is there",
      model: "scripted:edits.yaml",
      backend: { type: "local" },
    },
  },
};

const BEFORE = `# Prints the first ten squares.
i=1
while [ "$i" -le 10 ]; do
  echo "$((i * i))"
  i=$((i + 1))
done
`;
const SCRIPT = [
  {
    say: "The script prints bare numbers. I name them, and add their sum.",
    call: [
      {
        tool: "edit_file",
        args: {
          path: "squares.sh",
          old_text: '  echo "$((i * i))"\n',
          new_text: '  echo "$i squared is $((i * i))"\n  sum=$((sum + i * i))\n',
        },
      },
      { tool: "edit_file", args: { path: "squares.sh", old_text: "i=1\n", new_text: "i=1\nsum=0\n" } },
      {
        tool: "edit_file",
        args: { path: "squares.sh", old_text: "done\n", new_text: 'done\necho "their sum is $sum"\n' },
      },
      { tool: "execute", args: { command: "sh squares.sh" } },
    ],
  },
  { say: "Each line now says what it is, and the last one is the sum." },
];
const DICE = [
  { say: "I roll two dice. ", call: [{ tool: "roll_dice", args: { count: 2, sides: 6 } }] },
  { say: "There they are." },
];

const folder = mkdtempSync(join(tmpdir(), "skein-pictures-"));
let browser: Browser | undefined;
let stop = async () => {};
try {
  await buildPage(path("dist/page"));
  writeFileSync(join(folder, "edits.yaml"), JSON.stringify(SCRIPT));
  writeFileSync(join(folder, "dice.yaml"), JSON.stringify(DICE));
  const server = await startServer(folder, AGENTS);
  stop = () => server.end("SIGTERM");
  await fill(server.url);
  browser = await launchBrowser();
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  mkdirSync(out, { recursive: true });

  await page.goto(`${server.url}/#/t/squares`);
  await page.getByText("Done. The first ten squares add up to 385.").waitFor();
  await take(page, "conversation");

  await page.goto(`${server.url}/#/t/named-squares/files`);
  await page.getByRole("button", { name: "squares.sh", exact: true }).last().click();
  await page.getByRole("region", { name: "Difference" }).first().waitFor();
  await take(page, "files");

  await page.setViewportSize({ width: 960, height: 600 });
  await page.goto(`${server.url}/#/t/dice`);
  await page.getByRole("button", { name: "Allow", exact: true }).waitFor();
  await take(page, "approval");
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByText("There they are.").waitFor();
  await page.getByText("roll_dice").last().click();
  await take(page, "dice");
} finally {
  await browser?.close();
  await stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Creates realistic conversations. */
async function fill(baseUrl: string): Promise<void> {
  const client = createClient({ baseUrl });
  const run = async (id: string, title: string, input: string, agent = "assistant") => {
    await client.threads.create({ id, title });
    for await (const { event, data } of client.run(id, { agent, input }))
      if (event === "error") throw new Error(data.message);
  };
  await client.files.write("squares.sh", BEFORE, { agent: "editor" });
  await run("named-squares", "Name the squares", "Say what each number is, and add them up.", "editor");
  await run("first-try", "A first try", "What can you do?");
  await run("dice", "Two dice", "Roll two dice.", "helper");
  await run("squares", "Squares in a shell script", "Hello, what can you do?");
}

async function take(page: Page, name: string): Promise<void> {
  const file = join(out, `${name}.png`);
  await page.screenshot({ path: file });
  const { size } = statSync(file);
  console.log(`${name}.png: ${Math.round(size / 1000)} kB`);
  if (size > MAX_BYTES) throw new Error(`${file} has ${size} bytes, more than ${MAX_BYTES}.`);
}
