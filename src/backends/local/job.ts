// One command that runs: its shell, its output, and how it is ended.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { ExecResult } from "../../core/backend.ts";
import { AppError } from "../../core/errors.ts";
import { codeOf } from "./failures.ts";
import { endTree, MARK } from "./kill.ts";
import type { Pipe } from "./pipes.ts";

/** How long the system may take to say that a killed shell is gone. */
const REAP_MS = 1000;

export class Job {
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
    await endTree({ leader, isMarked: (mark) => mark === this.mark });
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
