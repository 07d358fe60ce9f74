// One command that runs in a lane: its script, its output, what becomes of it, and how it is ended.
//
// The command runs in a session of its own and writes into a pipe of its own. When it ends, its status follows its
// output through that pipe, so nothing that it wrote comes later. What it leaves in the background may hold the pipe
// on, but never writes into what the lane does next.

import { setTimeout as sleep } from "node:timers/promises";
import type { CommandEnd, ExecResult } from "../../core/backend.ts";
import { randomId } from "../../lib/random-id.ts";
import { newTranscript } from "../transcript.ts";
import type { Leader, Tree } from "./ending.ts";
import { type Exit, exitOf, FAREWELL, isKill, scriptOf } from "./job-script.ts";
import type { Lane } from "./lane.ts";
import { linesOf } from "./lines.ts";
import { LaneLost } from "./runner.ts";

/** How long ending it may hold up who waits for it. */
const ENDING_MS = 3500;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** What is left in the background may hold the pipe: so long it is waited for, and so much is read of it. */
const DRAIN_MS = 100;
const DRAIN_BYTES = 1024 * 1024;
/** How much later than the status the shell's own messages may come, for they come on another way. */
const MESSAGES_MS = 1000;
/** How much later than the end of a command it may become known that the memory was used up. */
const OOM_MS = 250;
/** Between two reads of what is printed in the background. */
const SIP_MS = 10;

export interface JobOptions {
  readonly command: string;
  /** Where it starts. */
  readonly workdir: string;
  /** Ends all that it has started; resolves when nothing is left. */
  readonly endTree: (tree: Tree) => Promise<void>;
}

/** `done`: the lane is free. `held`: it is through, but its output is held. `cut`: its output is lost. */
type Outcome = "done" | "held" | "cut" | "lost";

export class Job implements Tree {
  readonly id = randomId();
  readonly transcript = newTranscript();
  readonly lane: Lane;
  /** Why it was ended by us. */
  ended: CommandEnd | undefined;
  readonly #endTree: (tree: Tree) => Promise<void>;
  readonly #leader = Promise.withResolvers<Leader | undefined>();
  readonly #settled = Promise.withResolvers<void>();
  #outcome: Outcome | undefined;
  #status: number | undefined;
  #patience: NodeJS.Timeout | undefined;
  #bytes = 0;
  #bytesInTime = 0;
  #isAnswered = false;
  #isPipeClosed = false;
  /** Whether the shell itself had something to say of how the command ended, and whether all of that has come. */
  #hasMessage = false;
  #isReported = false;
  #isOutOfMemory = false;
  #ending: Promise<void> | undefined;
  #isEnded = false;
  #wake = () => {};

  /** Starts it. */
  constructor(lane: Lane, { command, workdir, endTree }: JobOptions) {
    this.lane = lane;
    this.#endTree = endTree;
    const mark = randomId();
    const report = linesOf((line) => this.#onReport(line, mark));
    lane.begin({
      mark,
      script: scriptOf({ mark, id: this.id, command, workdir }),
      onOutput: (bytes) => this.#onOutput(bytes),
      onErrorOutput: report,
      onMark: (words) => this.#onMark(words),
      onLost: () => this.#settle("lost"),
    });
  }

  get leader(): Promise<Leader | undefined> {
    return this.#leader.promise;
  }
  get outcome(): Outcome | undefined {
    return this.#outcome;
  }
  /** True once the command is through; when it was ended by us, with all that it had started. */
  get isOver(): boolean {
    return this.#ending ? this.#isEnded : this.#outcome !== undefined;
  }

  /** Resolves at the next change of what is above or below, or after `ms`. */
  async change(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** Stops and goes on with reading: who prints meanwhile waits. Not while it is being ended, for that must be seen. */
  hold(): void {
    if (!this.ended) this.lane.pause();
  }
  goOn(): void {
    this.lane.resume();
  }

  /** Ends the command and everything it started. Without effect when the command is through. */
  end(reason: CommandEnd): Promise<void> {
    if (this.#ending) return this.#ending;
    if (this.#status !== undefined || this.#outcome) return Promise.resolve();
    this.ended = reason;
    this.goOn();
    this.#ending = this.#end();
    return this.#ending;
  }

  /** The memory of the sandbox was used up. */
  noteOom(): void {
    this.#isOutOfMemory = true;
    this.#wake();
  }

  /** What became of it, once it is over. */
  async result(): Promise<ExecResult> {
    const exit = this.#exit();
    const isKilled = isKill(exit);
    if (isKilled && !this.ended && !this.#isOutOfMemory) await this.change(OOM_MS);
    const { text: output, omitted } = this.transcript.read();
    const ended = this.ended ?? this.#loss() ?? (isKilled && this.#isOutOfMemory ? "oom" : undefined);
    return { output, omitted, ...exit, ...(ended ? { ended } : {}) };
  }

  #exit(): Exit {
    return this.#status === undefined ? { exitCode: null } : exitOf(this.#status, this.#hasMessage);
  }

  #loss(): CommandEnd | undefined {
    if (this.#status !== undefined) return undefined;
    return this.#outcome === "lost" ? "sandbox-lost" : "output-lost";
  }

  async #end(): Promise<void> {
    const isOver = new AbortController();
    const impatience = sleep(ENDING_MS, undefined, { signal: isOver.signal }).catch(() => {});
    await Promise.race([Promise.all([this.#endTree(this), this.#settled.promise]), impatience]);
    isOver.abort();
    if (!this.#outcome) this.lane.close(new LaneLost("a command does not end"));
    this.#isEnded = true;
    this.#wake();
  }

  #onOutput(bytes: Buffer): void {
    if (this.#outcome) this.#sip();
    if (this.#outcome || this.ended === "output-limit") return;
    this.#bytes += bytes.length;
    this.transcript.take(bytes);
    if (this.#status === undefined) this.#bytesInTime = this.#bytes;
    if (this.#bytes > MAX_OUTPUT_BYTES) void this.end("output-limit");
    if (this.#bytes - this.#bytesInTime > DRAIN_BYTES) this.#settle("held");
    this.#wake();
  }

  /** Reads on and forgets, so that who prints is not held up, but too slowly to keep the server busy. */
  #sip(): void {
    this.lane.pause();
    setTimeout(() => this.lane.resume(), SIP_MS).unref();
  }

  /** First the command's status, if the pipe is whole; then that nobody holds the pipe any more. */
  #onMark(words: string): void {
    if (!this.#isAnswered) this.lane.write(FAREWELL).catch(() => {});
    this.#isAnswered = true;
    const [kind, status] = words.split(" ");
    if (kind === "ended") {
      this.#status = Number(status);
      this.#patience = setTimeout(() => this.#onImpatience(), DRAIN_MS);
      return;
    }
    this.#isPipeClosed = true;
    this.#review();
  }

  #onReport(line: string, mark: string): void {
    const [word, of, pid, startedAt] = line.split(" ");
    if (of === mark && word === "started")
      this.#leader.resolve({ pid: Number(pid), startedAt: `${Number(startedAt)}` });
    else if (of === mark) this.#isReported = true;
    else if (line !== "") this.#hasMessage = true;
    this.#review();
  }

  #onImpatience(): void {
    const settle = () => this.#settle("held");
    // A busy server may not have come to read what has come long ago: it does before the immediate.
    if (this.#isReported) setImmediate(settle);
    else this.#patience = setTimeout(settle, MESSAGES_MS);
  }

  #review(): void {
    if (!this.#isPipeClosed) return;
    if (this.#status === undefined) this.#settle("cut");
    else if (this.#isReported || this.#outcome) this.#settle("done");
  }

  #settle(outcome: Outcome): void {
    if (this.#isPipeClosed) this.lane.end();
    if (this.#outcome) return;
    clearTimeout(this.#patience);
    this.#outcome = outcome;
    this.#leader.resolve(undefined);
    this.#settled.resolve();
    this.#wake();
  }
}
