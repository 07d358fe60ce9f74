// Runs scripts and commands in a sandbox, each in a free shell session.
//
// This code does not depend on the kind of sandbox. The sandbox's owner opens the channels, is called when a shell
// does not answer, repeats lost operations, and closes the shell.

import type { ExecOptions, ExecOutput, ExecResult } from "../../agent/core/backend.ts";
import type { Stream } from "../../agent/core/stream.ts";
import { assertExecutable, CANCELLED, followProcess } from "../process.ts";
import { killTree, type ProcessTree } from "./kill-tree.ts";
import { ShellProcess } from "./process.ts";
import {
  runScript,
  SandboxLostError,
  type ScriptReply,
  type ScriptRunner,
  type ShellScript,
} from "./script.ts";
import { type OpenChannel, ShellSession } from "./session.ts";
import { ShellPool } from "./session-pool.ts";

/** The maximum number of sessions that run scripts. An urgent script may open one more session. */
const SCRIPT_SESSIONS = 2;
/** The maximum number of concurrent commands. Further commands wait. */
const MAX_RUNNING = 16;
/**
 * The maximum number of background processes that keep their output open. Starting another one ends the oldest.
 */
const MAX_BACKGROUND = 8;
/** How long the server tries to end a command, in milliseconds. */
const ENDING_MS = 60_000;
/** How long an idle session may take to prove that its shell is alive, in milliseconds. */
const PING_MS = 3000;

export interface ShellOptions {
  /** The working directory of commands. */
  readonly workdir: string;
  /** A script that defines the functions that other scripts use. */
  readonly prelude: string;
  /** Called if a shell has not answered for 1.5 s. */
  readonly onSilence: () => void;
}

export class Shell implements Pick<ScriptRunner, "runOnce"> {
  readonly #options: ShellOptions;
  readonly #closing = new AbortController();
  readonly #scripts: ShellPool;
  readonly #commands: ShellPool;
  readonly #running = new Set<ShellProcess>();
  readonly #background = new Set<ShellProcess>();
  #uses = 0;

  constructor(openChannel: OpenChannel, options: ShellOptions) {
    this.#options = options;
    const { prelude } = options;
    this.#scripts = new ShellPool({
      open: (signal) => ShellSession.open(openChannel, { prelude, signal }),
      limit: SCRIPT_SESSIONS,
    });
    this.#commands = new ShellPool({
      open: (signal) => ShellSession.open(openChannel, { signal }),
      limit: MAX_RUNNING,
    });
  }

  /** True if a caller is waiting for an operation in this sandbox. */
  get isBusy(): boolean {
    return this.#uses > 0;
  }

  /** Resolves when a shell answers. Throws the reason if none does. */
  async prewarm(signal: AbortSignal): Promise<void> {
    this.#scripts.release(await this.#scripts.acquire(signal));
  }

  async runOnce(script: ShellScript, signal: AbortSignal): Promise<ScriptReply> {
    this.#uses++;
    try {
      return await this.#run(await this.#scripts.acquire(signal), script, signal);
    } finally {
      this.#uses--;
    }
  }

  /**
   * Implements `Backend.exec`. Before any process was started, throws `SandboxLostError`, `unavailable`, or the error
   * of opening a channel.
   */
  async *exec(command: string, options: ExecOptions): Stream<ExecResult, ExecOutput> {
    assertExecutable(command);
    this.#uses++;
    try {
      const session = await this.#acquireAlive(options.signal);
      if (session && options.signal.aborted) this.#commands.release(session);
      if (!session || options.signal.aborted) return CANCELLED;
      const { workdir } = this.#options;
      const running = new ShellProcess(session, {
        command,
        workdir,
        environment: options.environment,
        killTree: (tree) => this.#killTree(tree),
      });
      this.#running.add(running);
      try {
        return yield* followProcess(running, options);
      } finally {
        this.#running.delete(running);
        this.#returnSession(running);
      }
    } finally {
      this.#uses--;
    }
  }

  /** Kills every process of the sandbox's user: commands, sessions and background processes. */
  async killAll(signal: AbortSignal): Promise<void> {
    const session = await this.#scripts.acquireFirst(signal);
    // Closes the idle sessions first, because the command below also kills their shells, and their end would be noticed
    // too late.
    this.#scripts.closeIdle();
    this.#commands.closeIdle();
    await this.#run(session, { script: "kill -s KILL -- -1" }, signal);
  }

  /** Records that the sandbox ran out of memory. A command that was killed for this reason reports it. */
  noteOom(): void {
    for (const running of this.#running) running.noteOom();
  }

  /**
   * Closes the shell. Waiting and later calls fail with `reason`, and running commands end as `sandbox-lost`.
   * Does not kill any process.
   */
  close(reason: Error): void {
    this.#closing.abort(reason);
    this.#scripts.close(reason);
    this.#commands.close(reason);
    for (const { session } of this.#background) session.close(reason);
  }

  async #run(session: ShellSession, script: ShellScript, signal: AbortSignal): Promise<ScriptReply> {
    const { onSilence } = this.#options;
    try {
      return await runScript(session, script, { signal, onSilence });
    } finally {
      this.#scripts.release(session);
    }
  }

  /**
   * Returns a session whose shell has just answered, because a command is never started twice. Returns undefined if
   * the signal aborts in the meantime.
   */
  async #acquireAlive(signal: AbortSignal): Promise<ShellSession | undefined> {
    try {
      for (;;) {
        const session = await this.#commands.acquire(signal);
        if (await this.#answers(session, signal)) return session;
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** Closes a session that does not answer, and the other idle sessions, which have probably failed as well. */
  async #answers(session: ShellSession, signal: AbortSignal): Promise<boolean> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(PING_MS)]);
    const { onSilence } = this.#options;
    try {
      await runScript(session, { script: ":" }, { signal: limit, onSilence });
      return true;
    } catch (error) {
      if (signal.aborted) {
        this.#commands.release(session);
        throw error;
      }
      session.close(new SandboxLostError("its shell does not answer"));
      this.#commands.closeIdle();
      return false;
    }
  }

  #killTree(tree: ProcessTree): Promise<void> {
    const limit = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(ENDING_MS)]);
    const run = async (script: string, signal: AbortSignal) =>
      this.#run(await this.#scripts.acquireFirst(signal), { script }, signal);
    return killTree(tree, run, limit);
  }

  #returnSession(running: ShellProcess): void {
    const { session, outcome } = running;
    if (outcome === "done") this.#commands.release(session);
    else if (outcome === "held") this.#moveToBackground(running);
    else session.close(new SandboxLostError("its command was cut off"));
    // The session was lost, but the sandbox may still run the command.
    if (outcome === "lost" && !running.ended) void this.#killTree(running);
  }

  #moveToBackground(running: ShellProcess): void {
    const { session } = running;
    this.#commands.evict(session);
    this.#background.add(running);
    void session.free().then(() => {
      this.#background.delete(running);
      session.close(new SandboxLostError("its command ended"));
    });
    const [oldest] = this.#background;
    if (!oldest || this.#background.size <= MAX_BACKGROUND) return;
    this.#background.delete(oldest);
    void this.#killTree(oldest).then(() =>
      oldest.session.close(new SandboxLostError("its command was ended")),
    );
  }
}
