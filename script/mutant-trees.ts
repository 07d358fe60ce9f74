// Copies of the program. In each copy, a process runs the tests for several edits, one after another.

import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Order, Told } from "./mutant-tests.ts";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The time limit for one order, in ms, because an edit can make tests wait or loop forever. */
const LIMIT_MS = 300_000;
/** The time limit for the start of the process that runs tests, in ms. */
const START_MS = 300_000;

export interface Tree {
  readonly folder: string;
  readonly runner: ChildProcess;
}

/** Copies the project's files, as listed by git, with their current content, and builds the page. */
export async function makeTree(): Promise<Tree> {
  const folder = await mkdtemp(join(tmpdir(), "skein-mutants-"));
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], options).trim().split("\n");
  for (const each of new Set(files.map(dirname))) await mkdir(join(folder, each), { recursive: true });
  for (const file of files) await cp(join(ROOT, file), join(folder, file), { verbatimSymlinks: true });
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  buildPage(folder);
  const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, ".compiled") };
  const runner = fork("script/mutant-tests.ts", {
    cwd: folder,
    env,
    // A separate process group, so an edit that blocks the test process can be ended.
    detached: true,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  if ((await messageOf(runner, START_MS)) === "hung")
    throw new Error(`The process that runs the tests has not started within ${START_MS / 1000} seconds.`);
  return { folder, runner };
}

/** Builds the page of a copy from its current sources. Tests in a browser open the built page. */
export function buildPage(folder: string): void {
  execFileSync(process.execPath, ["script/page.ts"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
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

/** Throws if the process ends. A tree whose tests have hung is of no further use. */
export async function runTests({ runner }: Tree, order: Order): Promise<Told | "hung"> {
  runner.send(order);
  return (await messageOf(runner, LIMIT_MS)) as Told | "hung";
}

async function messageOf(runner: ChildProcess, limitMs: number): Promise<unknown> {
  const over = new AbortController();
  const late = AbortSignal.timeout(limitMs);
  const signal = AbortSignal.any([over.signal, late]);
  const exit = once(runner, "exit", { signal }).then(([code]): never => {
    throw new Error(`The process that runs the tests has ended with ${String(code)}.`);
  });
  try {
    const [message] = await Promise.race([once(runner, "message", { signal }), exit]);
    return message;
  } catch (error) {
    if (late.aborted) return "hung";
    throw error;
  } finally {
    over.abort();
  }
}
