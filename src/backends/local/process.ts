// One command that runs: its shell, its output, and how it is ended.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import { newTranscript } from "../transcript.ts";
import { codeOf, HAS_PROC } from "./workspace.ts";

/** How long the system may take to say that a killed shell is gone. */
const REAP_MS = 1000;

export interface Pipe {
  /** Ends when no process holds the other side any more. Destroyed by whoever opened the pipe. */
  readonly output: Socket;
  /** The side to give to a child. Closed by whoever opened the pipe, once the child has it. */
  readonly input: number;
}

export class LocalProcess {
  readonly output: Socket;
  /** In the environment of the command and of all that it starts. */
  readonly mark: string;
  /** Why it was ended by us. */
  ended: ExecResult["ended"];
  exit: { code: number | null; signal: NodeJS.Signals | null } | undefined;
  readonly #child: ChildProcess;
  #ending: Promise<void> | undefined;
  #isEnded = false;
  #wake = () => {};

  /** Starts it; throws `backend_failed`. The pipe's input is closed here, its output by the owner of the job. */
  constructor(command: string, folder: string, mark: string, { input, output }: Pipe) {
    this.mark = mark;
    this.output = output;
    try {
      this.#child = spawn("/bin/sh", ["-c", command], {
        cwd: folder,
        env: environment(folder, mark),
        detached: true,
        stdio: ["ignore", input, input],
      });
    } catch (error) {
      throw cannotStart(error);
    } finally {
      closeSync(input);
    }
    this.#child.on("error", () => {});
    this.#child.once("exit", (code, signal) => {
      this.exit = { code, signal };
      this.#wake();
    });
    output.on("readable", () => this.#wake());
    output.on("close", () => this.#wake());
  }

  /** Resolves when the shell runs. Throws `backend_failed` when it cannot. */
  async started(): Promise<void> {
    try {
      await once(this.#child, "spawn");
    } catch (error) {
      throw cannotStart(error);
    }
  }

  /** True once the command is through; when it was ended by us, with all that it had started. */
  get isOver(): boolean {
    return this.#ending ? this.#isEnded : this.exit !== undefined;
  }

  /** Whether its output has come to its end: nothing that it started holds it any more. */
  get isSilent(): boolean {
    return this.output.readableEnded || this.output.destroyed;
  }

  /** Resolves at the next output or the next change of what is above, or after `ms`. */
  async change(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Ends the command and everything it started. Without effect when the command is through. */
  end(reason: NonNullable<ExecResult["ended"]>): Promise<void> {
    if (this.#ending) return this.#ending;
    if (this.exit || this.#child.pid === undefined) return Promise.resolve();
    this.ended = reason;
    this.#ending = this.#end(this.#child.pid);
    return this.#ending;
  }

  async #end(leader: number): Promise<void> {
    await killTree({ leader, isMarked: (mark) => mark === this.mark });
    const waiting = new AbortController();
    if (!this.exit) {
      this.#child.once("exit", () => waiting.abort());
      await sleep(REAP_MS, undefined, { signal: waiting.signal }).catch(() => {});
    }
    this.#isEnded = true;
    this.#wake();
  }
}

export function cannotStart(cause: unknown): AppError {
  return new AppError(
    "backend_failed",
    `The command cannot be started (${codeOf(cause) ?? "unknown error"}).`,
    { cause },
  );
}

/** Nothing of the server's own environment but the search path. */
function environment(folder: string, mark: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: folder,
    WORKSPACE: folder,
    TMPDIR: tmpdir(),
    LANG: "C.UTF-8",
    TERM: "dumb",
    [MARK]: mark,
  };
}

// Ending a command with everything it has started: its process group, and what has left the group but still
// carries the mark that the command had in its environment. What leaves the group and wipes its environment
// stays; where there is no /proc, only the group is found.
/** The variable that holds the mark. */
export const MARK = "SKEIN_JOB";

/** How long those who are asked to end may take. */
const GRACE_MS = 400;
const MIN_WAIT_MS = 10;
const MAX_WAIT_MS = 80;
/** A process that forks while it is looked for may need several looks. */
const MAX_ROUNDS = 20;
const READS_AT_ONCE = 16;

interface Tree {
  /** The group's leader. Absent when it has ended, for then its number may be another's. */
  readonly leader?: number;
  /** Which marks are meant. */
  readonly isMarked: (mark: string) => boolean;
}

/** Asks first, then kills. Returns when nothing is left. */
export async function killTree({ leader, isMarked }: Tree): Promise<void> {
  const marked = () => processes(async (pid) => isMarked(await markOf(pid)));
  const asked = leader === undefined ? await marked() : [-leader];
  for (const target of asked) {
    signal(target, "SIGTERM");
    // A stopped process hears the other one only when it goes on.
    signal(target, "SIGCONT");
  }
  const left = leader === undefined ? marked : () => processes((pid) => isMember(pid, leader));
  const deadline = performance.now() + GRACE_MS;
  for (let wait = MIN_WAIT_MS; performance.now() < deadline; wait = Math.min(wait * 2, MAX_WAIT_MS)) {
    if (asked.every(isGone) || (HAS_PROC && (await left()).length === 0)) break;
    await sleep(wait);
  }
  for (const target of asked) signal(target, "SIGKILL");
  for (let round = 0; round < MAX_ROUNDS; round++) {
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

/** Empty for a process without one, one of another user, and one that has ended. */
async function markOf(pid: number): Promise<string> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  const variable = environment.split("\0").find((candidate) => candidate.startsWith(`${MARK}=`));
  return variable?.slice(MARK.length + 1) ?? "";
}

/** Whether it lives and belongs to the group: one that has ended is a member until its parent asks for it. */
async function isMember(pid: number, group: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // `pid (name) state parent group …`; the name may hold anything.
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(pgrp) === group && state !== "Z" && state !== "X";
}

function signal(target: number, name: NodeJS.Signals): void {
  try {
    process.kill(target, name);
  } catch {
    // It is gone.
  }
}

function isGone(target: number): boolean {
  try {
    process.kill(target, 0);
    return false;
  } catch {
    return true;
  }
}

// Reading a command's output to its end.
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What is left in the background may hold the pipe: so long it is waited for, and so much is read of it. */
const DRAIN_MS = 100;
const DRAIN_BYTES = 1024 * 1024;
/** Reads that empty a full pipe. */
const LAST_READS = 32;

/**
 * Reads only as fast as the consumer takes: a command that writes faster waits. Past the limit it is ended.
 * Returns when the command is through; its output may still be held by what it left in the background.
 */
export async function* follow(process: LocalProcess): Stream<ExecResult, ExecOutput> {
  const transcript = newTranscript();
  let bytes = 0;
  let patience = DRAIN_MS;
  let bytesInTime = 0;

  const read = (): boolean => {
    // `read` without a size returns a Buffer or null: no encoding is set.
    const chunk: Buffer | null = process.ended === "output-limit" ? null : process.output.read();
    if (!chunk) return false;
    bytes += chunk.length;
    transcript.take(chunk);
    if (bytes > MAX_OUTPUT_BYTES) void process.end("output-limit");
    return true;
  };

  for (;;) {
    const isMore = read();
    const text = transcript.due();
    if (text !== "") yield { text };
    if (!process.isOver) bytesInTime = bytes;
    if (bytes - bytesInTime > DRAIN_BYTES) break;
    if (isMore || text !== "") continue;
    if (!process.isOver) {
      await process.change(transcript.dueIn());
      continue;
    }
    if (process.isSilent || process.ended === "output-limit" || patience <= 0) break;
    const since = performance.now();
    await process.change(patience);
    patience -= performance.now() - since;
  }
  // What the command wrote is in the pipe by now, but a busy server may not have come to read it.
  for (let count = 0; count < LAST_READS && !process.isSilent; count++) {
    await setImmediate();
    if (!read()) break;
  }
  const rest = transcript.end();
  if (rest !== "") yield { text: rest };
  return resultOf(process, transcript.read());
}

function resultOf(
  { exit, ended }: LocalProcess,
  { text, omitted }: { text: string; omitted: number },
): ExecResult {
  return {
    output: text,
    omitted,
    exitCode: exit?.code ?? null,
    ...(exit?.signal ? { signal: exit.signal } : {}),
    ...(ended ? { ended } : {}),
  };
}
