// Lanes to shells that are child processes of the test, in a folder that all lanes of a test file share.

import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect } from "vitest";
import type { OpenChannel } from "../../src/backends/shell/channel.ts";
import { runFragment } from "../../src/backends/shell/fragment.ts";
import { Lane } from "../../src/backends/shell/lane.ts";
import type { Fragment } from "../../src/backends/shell/runner.ts";
import { childShell, SHELLS } from "./child-shell.ts";

const { signal } = new AbortController();
export const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-lanes-")));
/** Are closed after each test. */
export const lanes: Lane[] = [];
afterEach(() => {
  for (const lane of lanes.splice(0)) lane.close(new Error("the test is over"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

export const dash = childShell({ shell: SHELLS.dash, cwd: folder });

export async function opened(open: OpenChannel = dash, prelude = ""): Promise<Lane> {
  const lane = await Lane.open(open, { prelude, signal });
  lanes.push(lane);
  return lane;
}

export const run = (lane: Lane, fragment: Fragment | string, limit = signal) =>
  runFragment(lane, typeof fragment === "string" ? { script: fragment } : fragment, { signal: limit });

/** Resolves once the fragment that was just begun has reached its `: > started`. */
export const started = (name: string) =>
  expect.poll(() => existsSync(join(folder, name)), { interval: 5 }).toBe(true);
