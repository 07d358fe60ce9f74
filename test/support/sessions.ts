// ShellPool to shells that are child processes of the test, in a folder that all sessions of a test file share.

import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, expect } from "vitest";
import type { ShellScript } from "../../src/sandbox/shell/script.ts";
import { runScript } from "../../src/sandbox/shell/script.ts";
import type { OpenChannel } from "../../src/sandbox/shell/session.ts";
import { ShellSession } from "../../src/sandbox/shell/session.ts";
import { childShell, SHELLS } from "./child-shell.ts";

const { signal } = new AbortController();
export const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-sessions-")));
/** Are closed after each test. */
export const sessions: ShellSession[] = [];
afterEach(() => {
  for (const session of sessions.splice(0)) session.close(new Error("the test is over"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

export const dash = childShell({ shell: SHELLS.dash, cwd: folder });

export async function opened(open: OpenChannel = dash, prelude = ""): Promise<ShellSession> {
  const session = await ShellSession.open(open, { prelude, signal });
  sessions.push(session);
  return session;
}

export const run = (session: ShellSession, script: ShellScript | string, limit = signal) =>
  runScript(session, typeof script === "string" ? { script } : script, { signal: limit });

/** Resolves once the script that was just begun has reached its `: > started`. */
export const started = (name: string) =>
  expect.poll(() => existsSync(join(folder, name)), { interval: 5 }).toBe(true);
