// A long-lived `/bin/sh` on a channel. It runs one operation at a time and prints a sentinel when the operation ends.
// If the shell ends or its session is closed, the operation is lost.

import { orAborted } from "../../lib/async.ts";
import { type Operation, runScript, SandboxLostError } from "./script.ts";

const OPEN_MS = 8000;
/** The maximum number of bytes on standard error, which is far more than a shell prints in one operation. */
const MAX_ERROR_BYTES = 256 * 1024;

/** A running `/bin/sh` that reads its script from standard input: a container's exec stream, or a child process. */
export interface Channel {
  /** Writes to the shell's input. Resolves when the channel accepts more. Rejects once it is closed. */
  write(bytes: Uint8Array): Promise<void>;
  /** Stops the flow of output until `resume` is called. In the meantime, the writers of output block. */
  pause(): void;
  resume(): void;
  /** Closes the shell's input at once. Does not kill any process. */
  close(): void;
}

/** The events of a channel. `bytes` are valid until the call returns. */
export interface ChannelEvents {
  onOutput(bytes: Buffer): void;
  onErrorOutput(bytes: Buffer): void;
  /** Called once. No further calls follow. */
  onClose(error?: Error): void;
}

/**
 * Opens a channel. Throws if no shell can be started within a few seconds, or if `signal` aborts. The caller
 * closes the channel.
 */
export type OpenChannel = (events: ChannelEvents, signal: AbortSignal) => Promise<Channel>;

export interface SessionOptions {
  /** A script that runs once, before the first operation. */
  readonly prelude?: string;
  readonly signal: AbortSignal;
}

export class ShellSession {
  readonly #closed = Promise.withResolvers<void>();
  #channel: Channel | undefined;
  #isClosed = false;
  #operation: Operation | undefined;
  #reader: SentinelReader | undefined;
  #errorBytes = 0;
  #free: PromiseWithResolvers<void> | undefined;

  /**
   * Opens a session. Resolves when the shell answers. Throws `SandboxLostError` if it does not answer, the channel's error,
   * or the signal's reason.
   */
  static async open(
    openChannel: OpenChannel,
    { prelude = "", signal }: SessionOptions,
  ): Promise<ShellSession> {
    const session = new ShellSession();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(noAnswer()), OPEN_MS);
    const limit = AbortSignal.any([signal, deadline.signal]);
    try {
      const opening = openChannel(session.#events(), limit).then((channel) => session.#attach(channel));
      await orAborted(opening, limit);
      await runScript(session, { script: `${prelude}\n:` }, { signal: limit });
      return session;
    } catch (error) {
      session.close(noAnswer());
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }
  get isIdle(): boolean {
    return !this.#isClosed && !this.#operation;
  }
  get closed(): Promise<void> {
    return this.#closed.promise;
  }
  /** Resolves when the session is idle or closed. */
  async free(): Promise<void> {
    if (!this.#operation) return;
    this.#free ??= Promise.withResolvers();
    await this.#free.promise;
  }

  /** Begins an operation. Call it only while the session is idle. */
  begin(operation: Operation): void {
    if (this.#operation) throw new Error("A session runs one operation at a time.");
    if (this.#isClosed) {
      operation.onLost(new SandboxLostError("its shell ended"));
      return;
    }
    this.#operation = operation;
    this.#errorBytes = 0;
    this.#reader = new SentinelReader(operation.mark, {
      onOutput: (bytes) => (this.#operation ? this.#operation.onOutput(bytes) : this.#intrude()),
      onMark: (words) => this.#operation?.onMark(words),
    });
    this.write(Buffer.from(operation.script)).catch(() => {});
  }

  /** Ends the operation. The shell prints nothing more for this operation. */
  end(): void {
    this.#operation = undefined;
    this.#reader = undefined;
    this.#free?.resolve();
    this.#free = undefined;
  }

  /**
   * Writes to the shell's standard input. Resolves when the shell accepts more. Rejects once the session is
   * closed.
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#channel || this.#isClosed) throw new SandboxLostError("its shell ended");
    await this.#channel.write(bytes);
  }

  /** Stops and resumes the flow of output. */
  pause(): void {
    if (!this.#isClosed) this.#channel?.pause();
  }
  resume(): void {
    if (!this.#isClosed) this.#channel?.resume();
  }

  close(reason: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#channel?.close();
    const operation = this.#operation;
    this.end();
    this.#closed.resolve();
    operation?.onLost(reason);
  }

  /** Closes a channel that was opened too late. */
  #attach(channel: Channel): void {
    if (this.#isClosed) channel.close();
    else this.#channel = channel;
  }

  #events(): ChannelEvents {
    return {
      onOutput: (bytes) => {
        try {
          if (this.#reader) this.#reader.feed(bytes);
          else this.#intrude();
        } catch (cause) {
          this.#intrude(cause);
        }
      },
      onErrorOutput: (bytes) => {
        this.#errorBytes += bytes.length;
        if (this.#errorBytes > MAX_ERROR_BYTES) this.#intrude();
        else this.#operation?.onErrorOutput?.(bytes);
      },
      onClose: (cause) => this.close(new SandboxLostError("its shell ended", { cause })),
    };
  }

  /**
   * Closes the session after unexpected output. Processes in the sandbox can write to the shell's output and
   * must not be able to keep the server busy this way.
   */
  #intrude(cause?: unknown): void {
    this.close(new SandboxLostError("its shell printed unexpected output", { cause }));
  }
}

const noAnswer = () => new SandboxLostError(`no shell answered within ${OPEN_MS / 1000} s`);

/**
 * The first byte of a sentinel. Text rarely ends with this byte, so output rarely has to wait for the next
 * bytes.
 */
const FIRST = 0x1e;
const LINE_END = 0x0a;
/** A length that is greater than that of any sentinel. */
const MAX_WORDS_LENGTH = 16_384;
const NOTHING = Buffer.alloc(0);

export interface SentinelListener {
  /** `bytes` are valid until the call returns. */
  onOutput(bytes: Buffer): void;
  onMark(words: string): void;
}

/**
 * Finds the sentinels in a shell's output. A sentinel consists of a control byte, the operation's random word, a
 * space, a few words and a line ending. Passes on all other output. Delays only bytes that may begin a sentinel.
 */
export class SentinelReader {
  readonly #mark: Buffer;
  readonly #listener: SentinelListener;
  /** The number of bytes of a possible sentinel that were received. */
  #held = 0;
  /** The words of a sentinel as bytes. Set until its line ends. */
  #words: string | undefined;

  constructor(mark: string, listener: SentinelListener) {
    this.#mark = Buffer.from(`\x1e${mark} `);
    this.#listener = listener;
  }

  /** Processes bytes. Throws if a sentinel does not end, because the shell cannot have written it. */
  feed(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) rest = this.#words === undefined ? this.#readOutput(rest) : this.#readWords(rest);
  }

  /** Returns the bytes after the next sentinel. */
  #readOutput(bytes: Buffer): Buffer {
    if (this.#held > 0) return this.#readOn(bytes);
    const at = bytes.indexOf(this.#mark);
    if (at >= 0) {
      this.#pass(bytes.subarray(0, at));
      this.#words = "";
      return bytes.subarray(at + this.#mark.length);
    }
    this.#held = this.#begunIn(bytes);
    this.#pass(bytes.subarray(0, bytes.length - this.#held));
    return NOTHING;
  }

  /** Continues a sentinel that began in earlier bytes. */
  #readOn(bytes: Buffer): Buffer {
    const held = this.#held;
    const next = bytes.subarray(0, this.#mark.length - held);
    const isMark = next.equals(this.#mark.subarray(held, held + next.length));
    this.#held = isMark ? held + next.length : 0;
    if (!isMark) {
      // The first byte occurs nowhere else in a sentinel, so no other sentinel can have begun in the delayed bytes.
      this.#pass(this.#mark.subarray(0, held));
      return bytes;
    }
    if (this.#held === this.#mark.length) {
      this.#held = 0;
      this.#words = "";
    }
    return bytes.subarray(next.length);
  }

  /** Returns how many of the last bytes may begin a sentinel. */
  #begunIn(bytes: Buffer): number {
    const at = bytes.lastIndexOf(FIRST);
    const length = bytes.length - at;
    if (at < 0 || length >= this.#mark.length) return 0;
    return bytes.subarray(at).equals(this.#mark.subarray(0, length)) ? length : 0;
  }

  #readWords(bytes: Buffer): Buffer {
    const end = bytes.indexOf(LINE_END);
    const words = `${this.#words}${bytes.toString("latin1", 0, end < 0 ? bytes.length : end)}`;
    if (words.length > MAX_WORDS_LENGTH) throw new Error("it printed an incomplete sentinel");
    if (end < 0) {
      this.#words = words;
      return NOTHING;
    }
    this.#words = undefined;
    this.#listener.onMark(Buffer.from(words, "latin1").toString());
    return bytes.subarray(end + 1);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#listener.onOutput(bytes);
  }
}

/** The maximum length of a line. Longer lines are truncated. */
const MAX_LENGTH = 4096;

/** Splits text that arrives in pieces into lines. Drops an unfinished last line. */
export function linesOf(onLine: (line: string) => void): (bytes: Buffer) => void {
  let begun = "";
  return (bytes) => {
    const [first = "", ...others] = bytes.toString("latin1").split("\n");
    begun = (begun + first).slice(0, MAX_LENGTH);
    for (const other of others) {
      onLine(begun);
      begun = other.slice(0, MAX_LENGTH);
    }
  };
}
