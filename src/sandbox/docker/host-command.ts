// Runs programs on the server's machine to manage disks and the firewall. Never uses a shell or the server's
// environment.

import { execFile, spawn } from "node:child_process";

const DEADLINE_MS = 30_000;
const LOCK_MS = 60_000;
/** A program that prints more is killed. The limit is high because repairing a file system can print a lot. */
const MAX_OUTPUT_BYTES = 64 * 1024 ** 2;
const ENVIRONMENT = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" };

/**
 * The failure of a program. The message contains paths on the machine, so log it, but never show it to users.
 */
export class CommandFailed extends Error {
  override name = "CommandFailed";
  readonly program: string;
  /**
   * The exit code, or `ENOENT` if the program is missing. Undefined if the program was killed at its
   * deadline.
   */
  readonly code: number | string | undefined;

  constructor(program: string, code: number | string | undefined, said: string) {
    super(`${program} failed (${code ?? "killed"}): ${said.trim()}`);
    this.program = program;
    this.code = code;
  }
}

interface CommandOptions {
  /**
   * Kills the program. The call returns after the program has ended. Omit the signal if an interruption would
   * do harm.
   */
  readonly signal?: AbortSignal;
  readonly input?: string;
  readonly deadlineMs?: number;
}

/** Runs a program and resolves with its output. Throws `CommandFailed` or the signal's reason. */
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
    // A program that ends without reading its input is not an error, because only the exit code matters.
    child.stdin?.on("error", () => {}).end(input);
  });
}

/**
 * Runs `work` while holding the lock file `path`, which excludes all other processes on this machine. The lock ends
 * with this process, even after a crash, but the file stays. Throws `CommandFailed` if the lock is not free within
 * a minute.
 */
export async function withLock<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  // `cat` echoes the line after `flock` has acquired the lock. The lock lasts until the input of `cat` ends.
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
    // While waiting for the lock, `flock` does not notice the end of its input.
    holder.kill("SIGKILL");
    throw error;
  } finally {
    holder.stdin.end();
  }
}
