// One command on this machine: its shell, its output pipe, and how it is killed with everything it started.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { readdir, readFile, unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AppError } from "../../agent/core/errors.ts";
import { backoff } from "../../lib/backoff.ts";
import { atMost, CommandProcess, type Exit, JOB } from "../process.ts";
import { codeOf, HAS_PROC, isMissing, type Workspace } from "./workspace.ts";

/** How long the system may take to report that a killed shell exited. */
const REAP_MS = 1000;
/** How long processes may take to end after SIGTERM. */
const GRACE_MS = 400;
const GRACE_BACKOFF = { base: 10, cap: 80 };
/** A process that forks during the scan may survive it, so the scan is repeated. */
const MAX_SCANS = 20;
const READS_AT_ONCE = 16;

const run = promisify(execFile);

export class LocalProcess extends CommandProcess {
  readonly output: Socket;
  /** In the environment of the command and of everything it starts. */
  readonly mark: string;
  readonly #child: ChildProcess;
  #exit: Exit = { exitCode: null };

  /** Throws `backend_failed`. Closes the pipe's input; the caller destroys its output. */
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

  /** Resolves once the shell runs. Throws `backend_failed` when it cannot. */
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
  /** More variables. */
  readonly more: Readonly<Record<string, string>> | undefined;
}

/** It gets only the search path of the server's environment. File tools cannot write what programs read at home. */
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
  /** Ends when no process holds the other end. The opener destroys it. */
  readonly output: Socket;
  /** The end for the child. The opener closes it once the child has it. */
  readonly input: number;
}

/**
 * Opens named pipes for commands' output. Node would give a child a socket, and a script that writes to `/dev/stderr`
 * fails on a socket; one pipe also keeps output and errors in order. A pipe that was read to its end is reused.
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
  // Neither blocks: the first is opened with O_NONBLOCK, the second because the first is open.
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

interface Tree {
  /** The leader of the process group. Omitted once it has ended, because its number may be reused. */
  readonly leader?: number;
  readonly isMarked: (mark: string) => boolean;
}

/**
 * Ends a process group and the processes outside of it that carry the mark: SIGTERM first, then SIGKILL. Resolves when
 * none is left. A process that leaves the group and clears its environment survives; without /proc only the group is found.
 */
export async function killTree({ leader, isMarked }: Tree): Promise<void> {
  const marked = () => processes(async (pid) => isMarked(await markOf(pid)));
  const targets = leader === undefined ? await marked() : [-leader];
  for (const target of targets) {
    signal(target, "SIGTERM");
    // A stopped process receives it only when it continues.
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

/** Empty for a process without a mark, of another user, or that has ended. */
async function markOf(pid: number): Promise<string> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  const variable = environment.split("\0").find((candidate) => candidate.startsWith(`${JOB}=`));
  return variable?.slice(JOB.length + 1) ?? "";
}

/** Whether it belongs to the group and is alive: a zombie stays a member until its parent waits for it. */
async function isMember(pid: number, group: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // `pid (name) state parent group …`; the name may contain anything.
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(pgrp) === group && state !== "Z" && state !== "X";
}

/** False when there is no such process. */
function signal(target: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, name);
  } catch {
    return false;
  }
}
