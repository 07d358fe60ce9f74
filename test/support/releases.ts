// The releases that this one may be rolled out beside, as programs to start: of the same format, or of the one before.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../../script/test-release", import.meta.url));
const LIST = new URL("last-releases", import.meta.url);

export interface Release {
  readonly commit: string;
  /** Its `main.js`. */
  readonly main: string | undefined;
  /** Those on which it is run beside this one. */
  readonly stores: readonly string[];
}

/** Those of the list, built; without a program where that fails: see needing.ts. */
export async function lastReleases(): Promise<Release[]> {
  const releases = [];
  for (const line of readFileSync(LIST, "utf8").trim().split("\n")) {
    const [commit = "", ...stores] = line.split(" ");
    releases.push({ commit, stores, main: await built(commit) });
  }
  return releases;
}

async function built(commit: string): Promise<string | undefined> {
  const child = spawn("sh", [SCRIPT, commit], { stdio: ["ignore", "pipe", "inherit"] });
  const [folder, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  return code === 0 ? join(folder.trim(), "dist", "main.js") : undefined;
}
