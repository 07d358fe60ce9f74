// Programs of the machine the server runs on, for what only that machine can do: disks and firewall rules. Never
// through a shell, and with nothing of the server's environment.

import { execFile, spawn } from "node:child_process";

const DEADLINE_MS = 30_000;
const LOCK_MS = 60_000;
/** Of what a program says; one that says more is killed. A file system that is mended can say a lot. */
const MAX_OUTPUT_BYTES = 64 * 1024 ** 2;
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

/** Its message names paths of this machine: it is for the log, not for users. */
export class CommandFailed extends Error {
  override name = "CommandFailed";
  readonly program: string;
  /** `ENOENT` when there is no such program; nothing when it was killed at its deadline. */
  readonly code: number | string | undefined;

  constructor(program: string, code: number | string | undefined, said: string) {
    super(`${program} failed (${code ?? "killed"}): ${said.trim()}`);
    this.program = program;
    this.code = code;
  }
}

export interface CommandOptions {
  /** Kills the program; the call returns when it is gone. Left out where a stop in the middle does harm. */
  readonly signal?: AbortSignal;
  readonly input?: string;
  readonly deadlineMs?: number;
}

/** Resolves with what it prints. Throws `CommandFailed`, or the signal's reason. */
export async function runCommand(
  program: string,
  args: readonly string[],
  { signal, input, deadlineMs = DEADLINE_MS }: CommandOptions,
): Promise<string> {
  signal?.throwIfAborted();
  const options = {
    env: ENVIRONMENT,
    maxBuffer: MAX_OUTPUT_BYTES,
    timeout: deadlineMs,
    killSignal: "SIGKILL" as const,
  };
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, options, (error, printed, said) => {
      signal?.removeEventListener("abort", kill);
      if (!error) resolve(printed);
      else
        reject(signal?.aborted ? signal.reason : new CommandFailed(program, error.code ?? undefined, said));
    });
    const kill = () => child.kill("SIGKILL");
    signal?.addEventListener("abort", kill, { once: true });
    // A program that ends without reading is judged by its exit code.
    child.stdin?.on("error", () => {}).end(input);
  });
}

/**
 * Does `work` while no other process on this machine holds the lock `path`. The lock goes with this process,
 * however that ends; the file stays. Throws `CommandFailed` when it is not to be had within a minute.
 */
export async function withLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  // Holds the lock until its input ends, and answers once it has it.
  const holder = spawn("flock", ["--no-fork", path, "cat"], {
    env: ENVIRONMENT,
    stdio: ["pipe", "pipe", "ignore"],
  });
  holder.stdin.on("error", () => {}).write("\n");
  try {
    await new Promise<void>((resolve, reject) => {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(LOCK_MS)]);
      patience.addEventListener("abort", () =>
        reject(signal.reason ?? new CommandFailed("flock", undefined, path)),
      );
      holder.once("error", (error: NodeJS.ErrnoException) =>
        reject(new CommandFailed("flock", error.code, path)),
      );
      holder.once("close", (code) => reject(new CommandFailed("flock", code ?? undefined, path)));
      holder.stdout.once("data", () => resolve());
    });
    return await work();
  } catch (error) {
    // It may still be waiting, and then it does not see that its input ends.
    holder.kill("SIGKILL");
    throw error;
  } finally {
    holder.stdin.end();
  }
}
