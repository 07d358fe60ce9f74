// Files by the commands of a shell that is a child process of the test, in a sandbox that may be lost at any moment.

import { spawnSync } from "node:child_process";
import { chown, mkdtemp, realpath, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import type { Backend } from "../../src/agent/core/backend.ts";
import { editing } from "../../src/sandbox/edit.ts";
import { searching } from "../../src/sandbox/search.ts";
import { shellFiles } from "../../src/sandbox/shell/files.ts";
import { PRELUDE } from "../../src/sandbox/shell/prelude.ts";
import { SandboxLostError, type ScriptRunner } from "../../src/sandbox/shell/script.ts";
import { Shell } from "../../src/sandbox/shell/shell.ts";
import { execute } from "./backend.ts";
import { childShell, found, TRIED } from "./child-shell.ts";
import { needing } from "./needing.ts";

/** Root may do everything, so the tests need another user. */
export const USER = process.getuid?.() === 0 ? { uid: 1000, gid: 1000 } : undefined;

const folders: string[] = [];
const shells: Shell[] = [];

function closeAll(): void {
  for (const shell of shells.splice(0)) shell.close(new Error("the tests are over"));
  for (const folder of folders.splice(0)) {
    spawnSync("umount", ["-q", join(folder, "small")]);
    // No other is sure to reach the ground.
    spawnSync("rm", ["-rf", folder]);
  }
}

export async function newFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "skein-shell-")));
  folders.push(folder);
  if (USER) await chown(folder, USER.uid, USER.gid);
  return folder;
}

/** Where busybox finds nothing but itself. */
async function applets(busybox: string): Promise<string> {
  const folder = await newFolder();
  const names = spawnSync(busybox, ["--list"], { encoding: "utf8" }).stdout.split("\n");
  for (const name of names.filter(Boolean)) await symlink(busybox, join(folder, name));
  return folder;
}

async function openShell([file, ...words]: readonly [string, ...string[]], cwd: string): Promise<Shell> {
  const path = file === "busybox" ? await applets(found(file)) : "/usr/bin:/bin";
  const user = USER && [found("setpriv"), `--reuid=${USER.uid}`, `--regid=${USER.gid}`, "--clear-groups"];
  const [first = "", ...rest] = [...(user ?? []), found(file), ...words];
  const channel = childShell({ shell: [first, ...rest], cwd, path });
  const shell = new Shell(channel, { workdir: cwd, prelude: PRELUDE, onSilence() {} });
  shells.push(shell);
  return shell;
}

/** Runs a lost operation again, once. */
const running = (runOnce: ScriptRunner["runOnce"]): ScriptRunner => ({
  runOnce,
  run: (script, signal) =>
    runOnce(script, signal).catch((error) => {
      if (!(error instanceof SandboxLostError)) throw error;
      return runOnce(script, signal);
    }),
});

/** Does everything twice that may be done twice. */
export const repeating = (runner: ScriptRunner): ScriptRunner => ({
  ...runner,
  async run(script, signal) {
    await runner.run(script, signal);
    return runner.run(script, signal);
  },
});

/** Loses the sandbox once, before or after its `count`th operation. */
export function losing({ runOnce }: ScriptRunner, count: number, when: "before" | "after"): ScriptRunner {
  let left = count;
  return running(async (script, signal) => {
    left--;
    if (left === 0 && when === "before") throw new SandboxLostError("lost by the test");
    const reply = await runOnce(script, signal);
    if (left === 0) throw new SandboxLostError("lost by the test");
    return reply;
  });
}

export function backendOn(
  runner: ScriptRunner,
  workdir: string,
  exec: Backend["exec"] = noCommands,
): Backend {
  const files = shellFiles(runner, workdir);
  return { ...{ type: "shell", exec }, ...files, ...editing(files), ...searching(files) };
}

const noCommands = () => {
  throw new Error("not needed here");
};

export async function* from(...chunks: Uint8Array[]) {
  yield* chunks;
}

export async function openedWith(command: readonly [string, ...string[]], workdir?: string) {
  const folder = workdir ?? (await newFolder());
  const shell = await openShell(command, folder);
  const runner = running((script, signal) => shell.runOnce(script, signal));
  const backend = backendOn(runner, folder, (line, options) => shell.exec(line, options));
  const sh = async (line: string) => (await execute(backend, line)).output;
  return { runner, workdir: folder, backend, sh, staged: () => sh("ls -A .skein/staging") };
}

/** Opens a workspace: a new folder, or the one that is given. */
type OpenFiles = (workdir?: string) => ReturnType<typeof openedWith>;

/** Runs `tests` for each shell, and closes all that they have opened. */
export function describeFiles(tests: (opened: OpenFiles) => void): void {
  // For each file: those that share a process load this module once.
  afterAll(closeAll);
  describe.each(TRIED)("files by %s", (_, command) => {
    needing(found(command[0]), command[0]).describe("and its tools", () =>
      tests((workdir) => openedWith(command, workdir)),
    );
  });
}
