// Commands in sandboxes that are folders, each with shells that are child processes of the test.

import { mkdtemp, readdir, readFile, readlink, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach } from "vitest";
import type { ExecOptions } from "../../src/agent/core/backend.ts";
import type { OpenChannel } from "../../src/sandbox/shell/session.ts";
import { Shell } from "../../src/sandbox/shell/shell.ts";
import { drained } from "./backend.ts";
import { childShell, SHELLS } from "./child-shell.ts";

const { signal } = new AbortController();
const folders: string[] = [];
const shells: Shell[] = [];
afterEach(() => {
  for (const shell of shells.splice(0)) shell.close(new Error("the test is over"));
});
afterAll(async () => {
  await endAllIn(folders);
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })));
});

export async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-shell-")));
  folders.push(folder);
  return folder;
}

type Command = readonly [string, ...string[]];

export function shellIn(folder: string, open: OpenChannel): Shell {
  return new Shell(open, { workdir: folder, prelude: "", onSilence() {} });
}

/** A sandbox that is a folder, for one test. */
export async function opened(command: Command = SHELLS.dash) {
  const folder = await newFolder();
  let channels = 0;
  const open = childShell({ shell: command, cwd: folder });
  const shell = shellIn(folder, (events, limit) => {
    channels++;
    return open(events, limit);
  });
  shells.push(shell);
  const start = (text: string, options: Partial<ExecOptions> = {}) =>
    shell.exec(text, { signal, timeoutMs: 60_000, ...options });
  const execute = (text: string, options: Partial<ExecOptions> = {}) => {
    const result = drained(start(text, options));
    // A failed test no longer waits for the commands that it has left. They fail when their shell is closed.
    result.catch(() => {});
    return result;
  };
  return {
    ...{ folder, shell, start, execute, channels: () => channels },
    file: (name: string) => readFile(join(folder, name), "utf8").catch(() => ""),
    write: (name: string) => writeFile(join(folder, name), ""),
  };
}

/** Whether a process lives. One that has ended and is not yet asked for does not. */
export async function lives(pid: string): Promise<boolean> {
  const text = await readFile(`/proc/${pid.trim()}/stat`, "latin1").catch(() => "");
  return text !== "" && !/\) [ZX] /.test(text);
}

/** Processes that tests have left in the background, as commands may. */
async function endAllIn(places: readonly string[]): Promise<void> {
  for (const pid of await readdir("/proc")) {
    const place = await readlink(`/proc/${pid}/cwd`).catch(() => "");
    try {
      if (places.includes(place)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}

/** The process that reads a command's output. */
export async function readerOf(command: string): Promise<number> {
  const end = (pid: string, number: number) => readlink(`/proc/${pid.trim()}/fd/${number}`).catch(() => "");
  const pipe = await end(command, 1);
  for (const pid of await readdir("/proc"))
    if (Number(pid) > 0 && (await end(pid, 0)) === pipe) return Number(pid);
  throw new Error("The output has no reader.");
}
