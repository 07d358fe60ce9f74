// A running command. Reads its output, ends it and reports its result, in the same way for every backend
// type.

import { StringDecoder } from "node:string_decoder";
import type { CommandEnd, ExecOptions, ExecOutput, ExecResult } from "../agent/core/backend.ts";
import { AppError } from "../agent/core/errors.ts";
import type { Stream } from "../agent/core/stream.ts";
import { firstChars, headTail } from "../lib/text.ts";

/** Linux accepts at most 128 KiB in one argument. */
const MAX_COMMAND_BYTES = 100_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/**
 * The number of characters that the result keeps from the beginning of the output. It keeps the same number
 * from the end.
 */
const KEPT_CHARS = 50_000;
/** The number of characters to stream while the command is running, and the interval between two pieces. */
const STREAMED_CHARS = 50_000;
const STREAM_EVERY_MS = 100;
/**
 * The limits in time and size for reading output that background processes keep open after the command has
 * exited.
 */
const DRAIN_MS = 100;
const DRAIN_BYTES = 1024 * 1024;
/** How long after a command's exit status the rest of its report may arrive, in milliseconds. */
const REPORT_MS = 1000;
/** The number of milliseconds between two reads of background output. */
const SLOW_READ_MS = 10;
const MAX_TIMER_MS = 2 ** 31 - 1;

export const CANCELLED: ExecResult = { output: "", omitted: 0, exitCode: null, ended: "cancelled" };

export type Exit = Pick<ExecResult, "exitCode" | "signal" | "ended">;

/**
 * `done`: all output was read. `held`: the command exited, but its output is still open. `cut`: the output was lost
 * before the exit status arrived. `lost`: the sandbox disappeared.
 */
export type ProcessOutcome = "done" | "held" | "cut" | "lost";

/** The environment variable that marks every process of a command. */
export const JOB = "SKEIN_JOB";

export abstract class CommandProcess {
  readonly transcript = newTranscript();
  readonly #settled = Promise.withResolvers<void>();
  #ended: CommandEnd | undefined;
  #outcome: ProcessOutcome | undefined;
  #hasExited = false;
  #isHeld = false;
  #drain: NodeJS.Timeout | undefined;
  #bytes = 0;
  #bytesAtExit = 0;
  #ending: Promise<void> | undefined;
  #isEnded = false;
  #wake = () => {};

  /**
   * Stops reading the output until `resume` is called. In the meantime, the command blocks when it writes.
   */
  protected abstract pause(): void;
  protected abstract resume(): void;
  /** Kills the command and all processes that it started. */
  protected abstract kill(): Promise<void>;
  protected abstract exit(): Promise<Exit>;

  /** Why the server ended the command. */
  get ended(): CommandEnd | undefined {
    return this.#ended;
  }
  get outcome(): ProcessOutcome | undefined {
    return this.#outcome;
  }
  /**
   * True once the command has exited. If the server ended the command, true only once all processes that it started have
   * ended as well.
   */
  get isOver(): boolean {
    return this.#ending ? this.#isEnded : this.#outcome !== undefined;
  }

  /** Resolves at the next output or state change, or after `ms` milliseconds. */
  async change(ms?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /**
   * Stops reading while the consumer is busy, but not while the command is being ended, because the server must
   * see its end.
   */
  hold(): void {
    if (this.#ended) return;
    this.#isHeld = true;
    clearTimeout(this.#drain);
    this.pause();
  }
  release(): void {
    this.#isHeld = false;
    this.resume();
    if (this.#hasExited) this.#startDrain();
  }

  /** Ends the command and all processes that it started. Does nothing if the command has exited. */
  end(reason: CommandEnd): Promise<void> {
    if (this.#ending) return this.#ending;
    if (this.#hasExited || this.#outcome) return Promise.resolve();
    this.#ended = reason;
    this.release();
    this.#ending = this.kill().then(() => {
      this.#isEnded = true;
      this.wake();
    });
    return this.#ending;
  }

  async result(): Promise<ExecResult> {
    const exit = await this.exit();
    const { text: output, omitted } = this.transcript.read();
    return { output, omitted, ...exit, ...(this.#ended ? { ended: this.#ended } : {}) };
  }

  protected get settled(): Promise<void> {
    return this.#settled.promise;
  }
  /** True if the complete report of the exit has arrived. */
  protected get isReported(): boolean {
    return true;
  }
  protected get hasExited(): boolean {
    return this.#hasExited;
  }

  protected wake(): void {
    this.#wake();
  }

  protected onOutput(bytes: Buffer): void {
    if (this.#outcome) this.#readSlowly();
    if (this.#outcome || this.#ended === "output-limit") return;
    this.#bytes += bytes.length;
    this.transcript.add(bytes);
    if (!this.#hasExited) this.#bytesAtExit = this.#bytes;
    if (this.#bytes > MAX_OUTPUT_BYTES) void this.end("output-limit");
    if (this.#bytes - this.#bytesAtExit > DRAIN_BYTES) this.settle("held");
    this.wake();
  }

  protected onExit(): void {
    this.#hasExited = true;
    this.#startDrain();
  }

  protected settle(outcome: ProcessOutcome): void {
    if (this.#outcome) return;
    clearTimeout(this.#drain);
    this.#outcome = outcome;
    this.#settled.resolve();
    this.wake();
  }

  #startDrain(): void {
    if (this.#outcome || this.#isHeld) return;
    const settle = () => this.settle("held");
    clearTimeout(this.#drain);
    this.#drain = setTimeout(() => {
      // On a busy server, output that arrived in time may still be unread. The event loop reads that output before it
      // calls `settle`.
      if (this.isReported) setImmediate(settle);
      else this.#drain = setTimeout(settle, REPORT_MS);
    }, DRAIN_MS);
  }

  /** Discards background output slowly: the writer must not block, and the server must stay responsive. */
  #readSlowly(): void {
    this.pause();
    setTimeout(() => this.resume(), SLOW_READ_MS).unref();
  }
}

/** Streams the output at the consumer's pace. Ends the command at its timeout, on abort, and when the consumer stops reading. */
export async function* followProcess(
  command: CommandProcess,
  { signal, timeoutMs }: ExecOptions,
): Stream<ExecResult, ExecOutput> {
  const { transcript } = command;
  const timer = setTimeout(() => void command.end("timeout"), Math.min(timeoutMs, MAX_TIMER_MS));
  const onAbort = () => void command.end("cancelled");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    while (!command.isOver) {
      const text = transcript.due();
      if (text === "") {
        await command.change(transcript.dueIn());
        continue;
      }
      command.hold();
      try {
        yield { text };
      } finally {
        command.release();
      }
    }
    const rest = transcript.end();
    if (rest !== "") yield { text: rest };
    return await command.result();
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    await command.end("cancelled");
  }
}

/** Throws `invalid_request` for a command line that cannot be executed. */
export function assertExecutable(command: string): void {
  if (command.includes("\0"))
    throw new AppError("invalid_request", "The command contains a NUL character. Remove it.");
  const bytes = Buffer.byteLength(command);
  if (bytes > MAX_COMMAND_BYTES)
    throw new AppError(
      "invalid_request",
      `The command has ${bytes} bytes; the maximum is ${MAX_COMMAND_BYTES}. Write it to a file and execute that.`,
    );
}

/** Decodes output, keeps its beginning and end for the result, and returns the beginning in pieces to stream. */
function newTranscript() {
  const decoder = new StringDecoder("utf8");
  const kept = headTail(KEPT_CHARS);
  let pending = "";
  let allowance = STREAMED_CHARS;
  let dueAt = 0;

  const push = (text: string) => {
    kept.push(text);
    const streamed = firstChars(text, allowance);
    pending += streamed;
    allowance = streamed.length < text.length ? 0 : allowance - streamed.length;
  };
  const flush = () => {
    const text = pending;
    pending = "";
    dueAt = performance.now() + STREAM_EVERY_MS;
    return text;
  };

  return {
    add: (bytes: Buffer) => push(decoder.write(bytes)),
    /** Returns the text to stream now, if any. */
    due: () => (pending !== "" && performance.now() >= dueAt ? flush() : ""),
    /** Returns the milliseconds until text is due, or undefined if there is no text. */
    dueIn: () => (pending === "" ? undefined : Math.max(1, dueAt - performance.now())),
    /** Marks the end of the output. Returns the remaining text to stream. */
    end() {
      push(decoder.end());
      return flush();
    },
    read: () => kept.read(),
  };
}
