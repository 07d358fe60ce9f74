// The commands that run in one sandbox. What they leave in the background goes on until the sandbox is stopped.

import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import type { Stream } from "../../core/stream.ts";
import { refuseUnusable } from "../command-text.ts";
import { endTree, type RunBeside, type Tree } from "./ending.ts";
import { runFragment } from "./fragment.ts";
import { Job } from "./job.ts";
import type { Lane } from "./lane.ts";
import { Lanes } from "./lanes.ts";
import { LaneLost } from "./runner.ts";

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
  readonly open: (signal: AbortSignal) => Promise<Lane>;
  /** Where commands start. */
  readonly workdir: string;
  readonly runBeside: RunBeside;
  /** Called when a lane keeps silent that should have answered. */
  readonly onSilence: () => void;
}

export class Commands {
  readonly #options: CommandsOptions;
  readonly #lanes: Lanes;
  readonly #closing = new AbortController();
  readonly #running = new Set<Job>();
  readonly #background = new Set<Job>();

  constructor(options: CommandsOptions) {
    this.#options = options;
    this.#lanes = new Lanes({ open: options.open, limit: MAX_RUNNING });
  }

  /** As `Backend.exec`. Throws `LaneLost`, `unavailable`, or what opening a lane throws, while nothing was started. */
  async *exec(command: string, { signal, timeoutMs }: ExecOptions): Stream<ExecResult, ExecOutput> {
    refuseUnusable(command);
    const lane = await this.#take(signal);
    if (lane && signal.aborted) this.#lanes.give(lane);
    if (!lane || signal.aborted) return CANCELLED;
    const { workdir } = this.#options;
    const job = new Job(lane, { command, workdir, endTree: (tree) => this.#endTree(tree) });
    this.#running.add(job);
    const timer = setTimeout(() => void job.end("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
    const onAbort = () => void job.end("cancelled");
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return yield* follow(job);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      // Has an effect only when the consumer left before the command was through.
      await job.end("cancelled");
      this.#running.delete(job);
      this.#putAway(job);
    }
  }

  /** The memory was used up: one of those that run now may have been killed for it, and says so in its result. */
  noteOom(): void {
    for (const job of this.#running) job.noteOom();
  }

  /** What runs ends as `sandbox-lost`, what waits fails with `reason`. Nothing is killed. */
  close(reason: Error): void {
    this.#closing.abort(reason);
    this.#lanes.close(reason);
    for (const { lane } of this.#background) lane.close(reason);
  }

  /** All lanes that are idle are about to end. */
  dismissIdle(): void {
    this.#lanes.dismissIdle();
  }

  /** A lane that is alive, for a command is not begun twice. Nothing when the signal is aborted meanwhile. */
  async #take(signal: AbortSignal): Promise<Lane | undefined> {
    try {
      for (;;) {
        const lane = await this.#lanes.take(signal);
        if (await this.#answers(lane, signal)) return lane;
      }
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** One that does not answer is closed, and so are the other idle ones: what has happened to it happened to them. */
  async #answers(lane: Lane, signal: AbortSignal): Promise<boolean> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(PING_MS)]);
    const { onSilence } = this.#options;
    try {
      await runFragment(lane, { script: ":" }, { signal: limit, onSilence });
      return true;
    } catch (error) {
      if (signal.aborted) {
        this.#lanes.give(lane);
        throw error;
      }
      lane.close(new LaneLost("its shell does not answer"));
      this.dismissIdle();
      return false;
    }
  }

  #endTree(tree: Tree): Promise<void> {
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(ENDING_MS)]);
    return endTree(tree, this.#options.runBeside, signal);
  }

  #putAway(job: Job): void {
    const { lane, outcome } = job;
    if (outcome === "done") this.#lanes.give(lane);
    else if (outcome === "held") this.#leaveInBackground(job);
    else lane.close(new LaneLost("its command was cut off"));
    // The lane is gone, and the sandbox may live on, with the command in it.
    if (outcome === "lost" && !job.ended) void this.#endTree(job);
  }

  #leaveInBackground(job: Job): void {
    const { lane } = job;
    this.#lanes.forget(lane);
    this.#background.add(job);
    void lane.free().then(() => {
      this.#background.delete(job);
      lane.close(new LaneLost("its command is through"));
    });
    const [oldest] = this.#background;
    if (!oldest || this.#background.size <= MAX_BACKGROUND) return;
    this.#background.delete(oldest);
    void this.#endTree(oldest).then(() => oldest.lane.close(new LaneLost("its command was ended")));
  }
}

/** Reads only as fast as the consumer takes: a command that prints faster waits. */
async function* follow(job: Job): Stream<ExecResult, ExecOutput> {
  const { transcript } = job;
  while (!job.isOver) {
    const text = transcript.due();
    if (text === "") await job.change(transcript.dueIn());
    else yield* say(job, text);
  }
  const rest = transcript.end();
  if (rest !== "") yield { text: rest };
  return job.result();
}

async function* say(job: Job, text: string): AsyncGenerator<ExecOutput, void, void> {
  job.hold();
  try {
    yield { text };
  } finally {
    job.goOn();
  }
}
