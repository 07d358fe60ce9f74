// Copies of the program. In each copy, a process runs the tests for several edits, one after another.

import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Order, Told } from "./mutant-tests.ts";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The time limit for all tests of an edit, in ms. An edit that blocks its process reveals nothing. */
const LIMIT_MS = 300_000;

export interface Tree {
  readonly folder: string;
  readonly runner: ChildProcess;
}

/** Copies the project's files, as listed by git, with their current content. */
export async function makeTree(): Promise<Tree> {
  const folder = await mkdtemp(join(tmpdir(), "skein-mutants-"));
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], options).trim().split("\n");
  for (const each of new Set(files.map(dirname))) await mkdir(join(folder, each), { recursive: true });
  for (const file of files) await cp(join(ROOT, file), join(folder, file), { verbatimSymlinks: true });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, ".compiled") };
  const runner = fork("script/mutant-tests.ts", {
    cwd: folder,
    env,
    // A separate process group, so an edit that blocks the test process can be ended.
    detached: true,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await messageOf(runner);
  return { folder, runner };
}

export async function removeTree({ folder, runner }: Tree): Promise<void> {
  if (runner.exitCode === null && runner.signalCode === null) {
    const exited = once(runner, "exit");
    if (runner.pid !== undefined) process.kill(-runner.pid, "SIGKILL");
    await exited;
  }
  // A server that the last test killed may still be writing its compile cache.
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** Throws if the tests exceed their time limit or their process ends. */
export async function runTests({ runner }: Tree, order: Order): Promise<Told> {
  runner.send(order);
  return (await messageOf(runner)) as Told;
}

async function messageOf(runner: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(LIMIT_MS)]);
  const exit = once(runner, "exit", { signal }).then(([code]): never => {
    throw new Error(`The process that runs the tests has ended with ${String(code)}.`);
  });
  try {
    const [message] = await Promise.race([once(runner, "message", { signal }), exit]);
    return message;
  } finally {
    over.abort();
  }
}
