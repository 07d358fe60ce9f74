import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { NODE_ENV } from "../../support/node.ts";
import { serving } from "../../support/process.ts";
import { temporaryFolder } from "../../support/server.ts";

const DEV = fileURLToPath(new URL("../../../script/dev.ts", import.meta.url));

test("npm run dev serves the page, and leaves no process behind", async () => {
  const dir = await temporaryFolder();
  const env = { ...NODE_ENV, PORT: "0", DATA_DIR: join(dir, "data") };
  // A group of its own holds all that it starts.
  const child = spawn(process.execPath, [DEV], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const group = -Number(child.pid);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (text += String(chunk)));
  const exited = once(child, "exit");
  onTestFinished(() => {
    if (isAlive(group)) process.kill(group, "SIGKILL");
  });

  const { url } = await serving({ child, output: () => text, exited: exited.then(([code]) => Number(code)) });
  await expect.poll(async () => (await fetch(url, { redirect: "manual" })).status).toBe(200);
  expect(await (await fetch(url)).text()).toContain('src="page/page-');

  child.kill("SIGTERM");
  await exited;
  await expect.poll(() => isAlive(group)).toBe(false);
});

function isAlive(process_: number): boolean {
  try {
    return process.kill(process_, 0);
  } catch {
    return false;
  }
}
