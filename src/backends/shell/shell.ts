// A sandbox seen through the shells that run in it: fragments and commands, each in a lane that is free.
//
// It knows nothing of what the sandbox is. Whoever owns the sandbox opens the channels, hears when there is no
// answer, runs again what was lost, and closes.

import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import type { Stream } from "../../core/stream.ts";
import { refuseUnusable } from "../paths.ts";
import { killTree, type RunBeside, type Tree } from "./kill-tree.ts";
import { ShellProcess } from "./process.ts";
import { type Reply, type Runner, runScript, SandboxLostError, type ShellScript } from "./script.ts";
import { type OpenChannel, ShellSession } from "./session.ts";
import { ShellPool } from "./session-pool.ts";

/** For fragments, which are short. One more is opened for what cannot wait. */
const FILE_LANES = 2;

export interface ShellOptions {
  /** Where commands start. */
  readonly workdir: string;
  /** Defines what the scripts of fragments use. */
  readonly prelude: string;
  /** Called when a shell that should have answered keeps silent for 1.5 s. */
  readonly onSilence: () => void;
}

export class Shell implements Pick<Runner, "runOnce"> {
  readonly #options: ShellOptions;
  readonly #sessions: ShellPool;
  readonly #commands: Commands;
  #uses = 0;

  constructor(openChannel: OpenChannel, options: ShellOptions) {
    const { workdir, prelude, onSilence } = options;
    this.#options = options;
    this.#sessions = new ShellPool({
      open: (signal) => ShellSession.open(openChannel, { prelude, signal }),
      limit: FILE_LANES,
    });
    this.#commands = new Commands({
      open: (signal) => ShellSession.open(openChannel, { signal }),
      ...{ workdir, onSilence },
      runBeside: async (script, signal) =>
        this.#run(await this.#sessions.takeFirst(signal), { script }, signal),
    });
  }

  /** Whether somebody waits for something that runs here. */
  get isBusy(): boolean {
    return this.#uses > 0;
  }

  /** Resolves when there is a shell that answers. Throws what is in the way. */
  async prewarm(signal: AbortSignal): Promise<void> {
    this.#sessions.give(await this.#sessions.take(signal));
  }

  async runOnce(fragment: ShellScript, signal: AbortSignal): Promise<Reply> {
    this.#uses++;
    try {
      return await this.#run(await this.#sessions.take(signal), fragment, signal);
    } finally {
      this.#uses--;
    }
  }

  /** As `Backend.exec`. Throws `SandboxLostError`, `unavailable`, or what opening a channel throws, while nothing was started. */
  async *exec(command: string, options: ExecOptions): Stream<ExecResult, ExecOutput> {
    this.#uses++;
    try {
      return yield* this.#commands.exec(command, options);
    } finally {
      this.#uses--;
    }
  }

  /** Kills all that the lanes' user runs in the sandbox, whoever started it: commands, lanes, what was left behind. */
  async killAll(signal: AbortSignal): Promise<void> {
    const session = await this.#sessions.takeFirst(signal);
    // They will all be dead before we hear of it.
    this.#sessions.dismissIdle();
    this.#commands.dismissIdle();
    await this.#run(session, { script: "kill -s KILL -- -1" }, signal);
  }

  /** The memory of the sandbox was used up. A command that is killed by it says so in its result. */
  noteOom(): void {
    this.#commands.noteOom();
  }

  /** What waits, and what comes, fails with `reason`; commands that run end as `sandbox-lost`. Nothing is killed. */
  close(reason: Error): void {
    this.#sessions.close(reason);
    this.#commands.close(reason);
  }

  async #run(session: ShellSession, fragment: ShellScript, signal: AbortSignal): Promise<Reply> {
    const { onSilence } = this.#options;
    try {
      return await runScript(session, fragment, { signal, onSilence });
    } finally {
      this.#sessions.give(session);
    }
  }
}

// The commands that run in one sandbox. What they leave in the background goes on until the sandbox is stopped.
/** At once. Others wait. */
const MAX_RUNNING = 16;
/** What holds its output open in the background. The oldest is ended for a newer one. */
const MAX_BACKGROUND = 8;
/** What of a command could not be ended is tried to be ended for so long. */
const ENDING_MS = 60_000;
/** How long a lane that was idle may take to show that it is alive. */
const PING_MS = 3000;
const MAX_TIMER_MS = 2 ** 31 - 1;
const CANCELLED: ExecResult = { output: "", omitted: 0, exitCode: null, ended: "cancelled" };

export interface CommandsOptions {
  readonly open: (signal: AbortSignal) => Promise<ShellSession>;
  /** Where commands start. */
  readonly workdir: string;
  readonly runBeside: RunBeside;
  /** Called when a lane keeps silent that should have answered. */
  readonly onSilence: () => void;
}

export class Commands {
  readonly #options: CommandsOptions;
  readonly #sessions: ShellPool;
  readonly #closing = new AbortController();
  readonly #running = new Set<ShellProcess>();
  readonly #background = new Set<ShellProcess>();

  constructor(options: CommandsOptions) {
    this.#options = options;
    this.#sessions = new ShellPool({ open: options.open, limit: MAX_RUNNING });
  }

  /** As `Backend.exec`. Throws `SandboxLostError`, `unavailable`, or what opening a lane throws, while nothing was started. */
  async *exec(command: string, { signal, timeoutMs }: ExecOptions): Stream<ExecResult, ExecOutput> {
    refuseUnusable(command);
    const session = await this.#take(signal);
    if (session && signal.aborted) this.#sessions.give(session);
    if (!session || signal.aborted) return CANCELLED;
    const { workdir } = this.#options;
    const process = new ShellProcess(session, { command, workdir, killTree: (tree) => this.#killTree(tree) });
    this.#running.add(process);
    const timer = setTimeout(() => void process.end("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
    const onAbort = () => void process.end("cancelled");
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return yield* follow(process);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // Has an effect only when the consumer left before the command was through.
      await process.end("cancelled");
      this.#running.delete(process);
      this.#putAway(process);
    }
  }

  /** The memory was used up: one of those that run now may have been killed for it, and says so in its result. */
  noteOom(): void {
    for (const process of this.#running) process.noteOom();
  }

  /** What runs ends as `sandbox-lost`, what waits fails with `reason`. Nothing is killed. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    this.#sessions.close(reason);
    for (const { session } of this.#background) session.close(reason);
  }

  /** All lanes that are idle are about to end. */
  dismissIdle(): void {
    this.#sessions.dismissIdle();
  }

  /** A lane that is alive, for a command is not begun twice. Nothing when the signal is aborted meanwhile. */
  async #take(signal: AbortSignal): Promise<ShellSession | undefined> {
    try {
      for (;;) {
        const session = await this.#sessions.take(signal);
        if (await this.#answers(session, signal)) return session;
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** One that does not answer is closed, and so are the other idle ones: what has happened to it happened to them. */
  async #answers(session: ShellSession, signal: AbortSignal): Promise<boolean> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(PING_MS)]);
    const { onSilence } = this.#options;
    try {
      await runScript(session, { script: ":" }, { signal: limit, onSilence });
      return true;
    } catch (error) {
      if (signal.aborted) {
        this.#sessions.give(session);
        throw error;
      }
      session.close(new SandboxLostError("its shell does not answer"));
      this.dismissIdle();
      return false;
    }
  }

  #killTree(tree: Tree): Promise<void> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(ENDING_MS)]);
    return killTree(tree, this.#options.runBeside, signal);
  }

  #putAway(process: ShellProcess): void {
    const { session, outcome } = process;
    if (outcome === "done") this.#sessions.give(session);
    else if (outcome === "held") this.#leaveInBackground(process);
    else session.close(new SandboxLostError("its command was cut off"));
    // The lane is gone, and the sandbox may live on, with the command in it.
    if (outcome === "lost" && !process.ended) void this.#killTree(process);
  }

  #leaveInBackground(process: ShellProcess): void {
    const { session } = process;
    this.#sessions.forget(session);
    this.#background.add(process);
    void session.free().then(() => {
      this.#background.delete(process);
      session.close(new SandboxLostError("its command is through"));
    });
    const [oldest] = this.#background;
    if (!oldest || this.#background.size <= MAX_BACKGROUND) return;
    this.#background.delete(oldest);
    void this.#killTree(oldest).then(() =>
      oldest.session.close(new SandboxLostError("its command was ended")),
    );
  }
}

/** Reads only as fast as the consumer takes: a command that prints faster waits. */
async function* follow(process: ShellProcess): Stream<ExecResult, ExecOutput> {
  const { transcript } = process;
  while (!process.isOver) {
    const text = transcript.due();
    if (text === "") await process.change(transcript.dueIn());
    else yield* say(process, text);
  }
  const rest = transcript.end();
  if (rest !== "") yield { text: rest };
  return process.result();
}

async function* say(process: ShellProcess, text: string): AsyncGenerator<ExecOutput, void, void> {
  process.hold();
  try {
    yield { text };
  } finally {
    process.goOn();
  }
}
