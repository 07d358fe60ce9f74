// One command on this machine: its shell, its output pipe, and how to kill it with all processes that it started.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { readdir, readFile, unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AppError } from "../../agent/core/errors.ts";
import { atMost } from "../../lib/async.ts";
import { backoff } from "../../lib/backoff.ts";
import { CommandProcess, type Exit, JOB } from "../process.ts";
import { codeOf, HAS_PROC, isMissing, type Workspace } from "./workspace.ts";

/** How long the system may take to report the exit of a killed shell, in milliseconds. */
const REAP_MS = 1000;
/** How long processes have to end after SIGTERM, in milliseconds. */
const GRACE_MS = 400;
const GRACE_BACKOFF = { base: 10, cap: 80 };
/** The maximum number of scans. A process that forks during a scan may survive it. */
const MAX_SCANS = 20;
const READS_AT_ONCE = 16;

const run = promisify(execFile);

export class LocalProcess extends CommandProcess {
  readonly output: Socket;
  /** Set in the environment of the command and of all processes that it starts. */
  readonly mark: string;
  readonly #child: ChildProcess;
  #exit: Exit = { exitCode: null };

  /** Starts the command. Closes the pipe's input. The caller destroys its output. Throws `backend_failed`. */
  constructor(command: string, { workspace, mark, more }: Surroundings, { input, output }: Pipe) {
    super();
    this.mark = mark;
    this.output = output;
    try {
      this.#child = spawn("/bin/sh", ["-c", command], {
        cwd: workspace.root,
        env: { ...environment(workspace), ...more, [JOB]: mark },
        detached: true,
        stdio: ["ignore", input, input],
      });
    } catch (error) {
      throw cannotStart(error);
    } finally {
      closeSync(input);
    }
    this.#child.on("error", () => {});
    this.#child.once("exit", (exitCode, signal) => {
      this.#exit = signal ? { exitCode, signal } : { exitCode };
      this.onExit();
      this.#settleAtEnd();
    });
    output.on("data", (bytes: Buffer) => this.onOutput(bytes));
    output.once("close", () => this.#settleAtEnd());
  }

  /** Resolves once the shell is running. Throws `backend_failed` if it cannot run. */
  async started(): Promise<void> {
    try {
      await once(this.#child, "spawn");
    } catch (error) {
      throw cannotStart(error);
    }
  }

  protected pause(): void {
    this.output.pause();
  }
  protected resume(): void {
    this.output.resume();
  }
  protected async exit(): Promise<Exit> {
    return this.#exit;
  }
  protected async kill(): Promise<void> {
    if (this.#child.pid !== undefined)
      await killTree({ leader: this.#child.pid, isMarked: (mark) => mark === this.mark });
    await atMost(REAP_MS, this.settled);
  }

  #settleAtEnd(): void {
    if (this.hasExited && this.output.destroyed) this.settle("done");
  }
}

export function cannotStart(cause: unknown): AppError {
  const message = `The command cannot be started (${codeOf(cause) ?? "unknown error"}).`;
  return new AppError("backend_failed", message, { cause });
}

interface Surroundings {
  readonly workspace: Workspace;
  readonly mark: string;
  /** Additional environment variables. */
  readonly more: Readonly<Record<string, string>> | undefined;
}

/**
 * Returns the command's environment. It inherits only the search path from the server's environment. File tools cannot
 * write to the command's home directory, where programs read settings.
 */
function environment({ root, home }: Workspace): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: home,
    WORKSPACE: root,
    TMPDIR: tmpdir(),
    LANG: "C.UTF-8",
    TERM: "dumb",
  };
}

export interface Pipe {
  /** Ends when no process has the other end open. The caller that opened it destroys it. */
  readonly output: Socket;
  /** The file descriptor for the child. The caller that opened it closes it once the child has its own. */
  readonly input: number;
}

/**
 * Opens named pipes for the output of commands. Node would give the child a socket, and scripts that write to
 * `/dev/stderr` fail with sockets. A single pipe also keeps output and errors in order. A pipe is reused after it has
 * been read to its end.
 */
export function pipePool(): (newPath: () => string) => Promise<Pipe> {
  const free: string[] = [];
  return async (newPath) => {
    for (let path = free.pop(); path !== undefined; path = free.pop()) {
      try {
        return openPipe(path, free);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    }
    const path = newPath();
    await run("mkfifo", ["-m", "600", path]);
    return openPipe(path, free);
  };
}

function openPipe(path: string, free: string[]): Pipe {
  // Neither call blocks. The first one uses O_NONBLOCK. When the second one runs, the pipe is already open for reading.
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const output = new Socket({ fd: reader, readable: true, writable: false });
  output.on("error", () => output.destroy());
  output.once("close", () => {
    if (output.readableEnded) free.push(path);
    else unlink(path).catch(() => {});
  });
  try {
    const same = HAS_PROC ? `/proc/self/fd/${reader}` : path;
    return { output, input: openSync(same, constants.O_WRONLY) };
  } catch (error) {
    output.destroy();
    throw error;
  }
}

interface TreeToKill {
  /** The leader of the process group. Omit it after it has ended, because its number may be reused. */
  readonly leader?: number;
  readonly isMarked: (mark: string) => boolean;
}

/**
 * Ends a process group and the processes outside it that have the mark, first with SIGTERM and then with SIGKILL.
 * Resolves when no process is left. A process that leaves the group and clears its environment survives. Without /proc,
 * only the group is found.
 */
export async function killTree({ leader, isMarked }: TreeToKill): Promise<void> {
  const marked = () => processes(async (pid) => isMarked(await markOf(pid)));
  const targets = leader === undefined ? await marked() : [-leader];
  for (const target of targets) {
    signal(target, "SIGTERM");
    // A stopped process receives the signal only after it continues.
    signal(target, "SIGCONT");
  }
  const left = leader === undefined ? marked : () => processes((pid) => isMember(pid, leader));
  const deadline = performance.now() + GRACE_MS;
  for (let attempt = 0; performance.now() < deadline; attempt++) {
    if (targets.every((target) => !signal(target, 0)) || (HAS_PROC && (await left()).length === 0)) break;
    await sleep(backoff(attempt, GRACE_BACKOFF));
  }
  for (const target of targets) signal(target, "SIGKILL");
  for (let scan = 0; scan < MAX_SCANS; scan++) {
    const strays = await marked();
    if (strays.length === 0) return;
    for (const pid of strays) signal(pid, "SIGKILL");
  }
}

async function processes(test: (pid: number) => Promise<boolean>): Promise<number[]> {
  const pids = (await readdir("/proc").catch(() => [])).map(Number).filter((pid) => pid > 0);
  const found: number[] = [];
  for (let at = 0; at < pids.length; at += READS_AT_ONCE) {
    const batch = pids.slice(at, at + READS_AT_ONCE);
    const answers = await Promise.all(batch.map(test));
    found.push(...batch.filter((_, index) => answers[index]));
  }
  return found;
}

/**
 * Returns the mark of a process. The mark is empty for a process that has no mark, belongs to another user or
 * has ended.
 */
async function markOf(pid: number): Promise<string> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  const variable = environment.split("\0").find((candidate) => candidate.startsWith(`${JOB}=`));
  return variable?.slice(JOB.length + 1) ?? "";
}

/** True if the process belongs to the group and is alive. A zombie stays a member until its parent waits for it. */
async function isMember(pid: number, group: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // The format is `pid (name) state parent group …`. The name may contain any character.
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(pgrp) === group && state !== "Z" && state !== "X";
}

/** Sends a signal. Returns false if no such process exists. */
function signal(target: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, name);
  } catch {
    return false;
  }
}
