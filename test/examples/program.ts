// An example as a person runs it: a process of its own.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { NODE_ENV } from "../support/node.ts";

const EXAMPLES = new URL("../../examples/", import.meta.url);

/** Resolves with its exit code and everything it printed. Killed, if it still runs, when the test has finished. */
export async function program(file: string, args: readonly string[], env: Record<string, string> = {}) {
  const path = fileURLToPath(new URL(file, EXAMPLES));
  const child = spawn(process.execPath, [path, ...args], {
    env: { ...NODE_ENV, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const [code] = await once(child, "close");
  return { code, output };
}
