// One long-lived `/bin/sh` on a channel, which does one thing at a time.
//
// When the shell is through with what it was asked it prints a mark, so the lane knows that it is free. A lane whose
// shell ends, or is given up, is closed: what it was doing is lost.

import { orAborted } from "../../lib/abortable.ts";
import type { Channel, ChannelEvents, OpenChannel } from "./channel.ts";
import { type Operation, runFragment } from "./fragment.ts";
import { MarkReader } from "./marks.ts";
import { LaneLost } from "./runner.ts";

const OPEN_MS = 8000;
/** Much more than a shell has to say in one operation. */
const MAX_ERROR_BYTES = 256 * 1024;

export interface LaneOptions {
  /** A script that is run once, before anything else. */
  readonly prelude?: string;
  readonly signal: AbortSignal;
}

export class Lane {
  readonly #closed = Promise.withResolvers<void>();
  #channel: Channel | undefined;
  #isClosed = false;
  #operation: Operation | undefined;
  #reader: MarkReader | undefined;
  #errorBytes = 0;
  #free: PromiseWithResolvers<void> | undefined;

  /** Resolves when the shell answers. Throws `LaneLost` when it does not, what the channel says, or the signal's reason. */
  static async open(openChannel: OpenChannel, { prelude = "", signal }: LaneOptions): Promise<Lane> {
    const lane = new Lane();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(noAnswer()), OPEN_MS);
    const limit = AbortSignal.any([signal, deadline.signal]);
    try {
      const opening = openChannel(lane.#events(), limit).then((channel) => lane.#attach(channel));
      await orAborted(opening, limit);
      await runFragment(lane, { script: `${prelude}\n:` }, { signal: limit });
      return lane;
    } catch (error) {
      lane.close(noAnswer());
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
  /** Resolves when it is. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }
  /** Resolves when it is idle or closed. */
  async free(): Promise<void> {
    if (!this.#operation) return;
    this.#free ??= Promise.withResolvers();
    await this.#free.promise;
  }

  /** Only while it is idle. */
  begin(operation: Operation): void {
    if (this.#operation) throw new Error("A lane does one thing at a time.");
    if (this.#isClosed) {
      operation.onLost(new LaneLost("its shell ended"));
      return;
    }
    this.#operation = operation;
    this.#errorBytes = 0;
    this.#reader = new MarkReader(operation.mark, {
      onOutput: (bytes) => (this.#operation ? this.#operation.onOutput(bytes) : this.#intrude()),
      onMark: (words) => this.#operation?.onMark(words),
    });
    this.write(Buffer.from(operation.script)).catch(() => {});
  }

  /** The operation is over: the shell has said all that it had to say. */
  end(): void {
    this.#operation = undefined;
    this.#reader = undefined;
    this.#free?.resolve();
    this.#free = undefined;
  }

  /** To the shell's standard input. Resolves when more may be written, rejects when the lane is closed. */
  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#channel || this.#isClosed) throw new LaneLost("its shell ended");
    await this.#channel.write(bytes);
  }

  /** Stops and goes on with the flow of output. */
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

  /** One that comes too late is closed. */
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
      onClose: (cause) => this.close(new LaneLost("its shell ended", { cause })),
    };
  }

  /** Who runs in the sandbox can write where the shell writes, and must not keep us busy with it. */
  #intrude(cause?: unknown): void {
    this.close(new LaneLost("its shell said what it was not asked", { cause }));
  }
}

const noAnswer = () => new LaneLost(`no shell answered within ${OPEN_MS / 1000} s`);
