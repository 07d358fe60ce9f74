// ShellPool to shells that are child processes of the test, in a folder that all lanes of a test file share.

import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect } from "vitest";
import type { ShellScript } from "../../src/backends/shell/script.ts";
import { runScript } from "../../src/backends/shell/script.ts";
import type { OpenChannel } from "../../src/backends/shell/session.ts";
import { ShellSession } from "../../src/backends/shell/session.ts";
import { childShell, SHELLS } from "./child-shell.ts";

const { signal } = new AbortController();
export const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-lanes-")));
/** Are closed after each test. */
export const lanes: ShellSession[] = [];
afterEach(() => {
  for (const lane of lanes.splice(0)) lane.close(new Error("the test is over"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

export const dash = childShell({ shell: SHELLS.dash, cwd: folder });

export async function opened(open: OpenChannel = dash, prelude = ""): Promise<ShellSession> {
  const lane = await ShellSession.open(open, { prelude, signal });
  lanes.push(lane);
  return lane;
}

export const run = (lane: ShellSession, fragment: ShellScript | string, limit = signal) =>
  runScript(lane, typeof fragment === "string" ? { script: fragment } : fragment, { signal: limit });

/** Resolves once the fragment that was just begun has reached its `: > started`. */
export const started = (name: string) =>
  expect.poll(() => existsSync(join(folder, name)), { interval: 5 }).toBe(true);
