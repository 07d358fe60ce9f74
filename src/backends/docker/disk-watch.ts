// A workspace that the system does not hold to its size is looked at instead. It may grow past its size between two
// looks, by as much as can be written in that time.

import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import type { Stream } from "../../core/stream.ts";
import { quote, type Runner } from "../shell/runner.ts";
import type { Shell } from "../shell/shell.ts";

const LOOK_EVERY_MS = 2000;
const KIB = 1024;

/** Runs a command, and ends it when the workspace holds too much. */
export async function* execWatched(
  { shell, diskWatch }: { shell: Shell; diskWatch: DiskWatch | undefined },
  command: string,
  options: ExecOptions,
): Stream<ExecResult, ExecOutput> {
  if (!diskWatch) return yield* shell.exec(command, options);
  using watched = diskWatch.follow(options.signal);
  const result = yield* shell.exec(command, { ...options, signal: watched.signal });
  return watched.isFull ? { ...result, ended: "disk-limit" } : result;
}

export interface DiskWatchOptions {
  readonly shell: Pick<Runner, "runOnce">;
  readonly workdir: string;
  /** What the workspace may hold. */
  readonly bytes: number;
}

export interface WatchedCommand extends Disposable {
  /** Aborts with the caller's, or when the workspace holds too much. */
  readonly signal: AbortSignal;
  /** Whether it was aborted because the workspace holds too much. */
  readonly isFull: boolean;
}

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Before something is written. Throws `backend_failed` when the workspace is full. */
  async assertRoom(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#lookedAt < LOOK_EVERY_MS) return;
    if (await this.#isFull(signal))
      throw new AppError("backend_failed", "Nothing can be written: the disk is full. Remove files.");
    this.#lookedAt = performance.now();
  }

  /** While a command runs. Its end disposes of it. */
  follow(signal: AbortSignal): WatchedCommand {
    const full = new AbortController();
    const both = AbortSignal.any([signal, full.signal]);
    const look = async () => {
      if (await this.#isFull(both).catch(() => false)) full.abort();
    };
    const timer = setInterval(() => void look(), LOOK_EVERY_MS);
    return {
      signal: both,
      get isFull() {
        return full.signal.aborted;
      },
      [Symbol.dispose]: () => clearInterval(timer),
    };
  }

  async #isFull(signal: AbortSignal): Promise<boolean> {
    const { shell, workdir, bytes } = this.#options;
    const script = `set -- $(du -skx ${quote(workdir)}); r="0 $1"`;
    const { fields } = await shell.runOnce({ script }, signal);
    return Number(fields[1]) * KIB > bytes;
  }
}
