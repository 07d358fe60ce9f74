// A sandbox seen through the shells that run in it: fragments and commands, each in a lane that is free.
//
// It knows nothing of what the sandbox is. Whoever owns the sandbox opens the channels, hears when there is no
// answer, runs again what was lost, and closes.

import type { ExecOptions, ExecOutput, ExecResult } from "../../core/backend.ts";
import type { Stream } from "../../core/stream.ts";
import type { OpenChannel } from "./channel.ts";
import { Commands } from "./commands.ts";
import { runFragment } from "./fragment.ts";
import { Lane } from "./lane.ts";
import { Lanes } from "./lanes.ts";
import type { Fragment, Reply, Runner } from "./runner.ts";

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
  readonly #lanes: Lanes;
  readonly #commands: Commands;
  #uses = 0;

  constructor(openChannel: OpenChannel, options: ShellOptions) {
    const { workdir, prelude, onSilence } = options;
    this.#options = options;
    this.#lanes = new Lanes({
      open: (signal) => Lane.open(openChannel, { prelude, signal }),
      limit: FILE_LANES,
    });
    this.#commands = new Commands({
      open: (signal) => Lane.open(openChannel, { signal }),
      ...{ workdir, onSilence },
      runBeside: async (script, signal) => this.#run(await this.#lanes.takeFirst(signal), { script }, signal),
    });
  }

  /** Whether somebody waits for something that runs here. */
  get isBusy(): boolean {
    return this.#uses > 0;
  }

  /** Resolves when there is a shell that answers. Throws what is in the way. */
  async prewarm(signal: AbortSignal): Promise<void> {
    this.#lanes.give(await this.#lanes.take(signal));
  }

  async runOnce(fragment: Fragment, signal: AbortSignal): Promise<Reply> {
    this.#uses++;
    try {
      return await this.#run(await this.#lanes.take(signal), fragment, signal);
    } finally {
      this.#uses--;
    }
  }

  /** As `Backend.exec`. Throws `LaneLost`, `unavailable`, or what opening a channel throws, while nothing was started. */
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
    const lane = await this.#lanes.takeFirst(signal);
    // They will all be dead before we hear of it.
    this.#lanes.dismissIdle();
    this.#commands.dismissIdle();
    await this.#run(lane, { script: "kill -s KILL -- -1" }, signal);
  }

  /** The memory of the sandbox was used up. A command that is killed by it says so in its result. */
  noteOom(): void {
    this.#commands.noteOom();
  }

  /** What waits, and what comes, fails with `reason`; commands that run end as `sandbox-lost`. Nothing is killed. */
  close(reason: Error): void {
    this.#lanes.close(reason);
    this.#commands.close(reason);
  }

  async #run(lane: Lane, fragment: Fragment, signal: AbortSignal): Promise<Reply> {
    const { onSilence } = this.#options;
    try {
      return await runFragment(lane, fragment, { signal, onSilence });
    } finally {
      this.#lanes.give(lane);
    }
  }
}
