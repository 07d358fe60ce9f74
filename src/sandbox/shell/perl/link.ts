// The link to a file helper. It carries many concurrent requests, each with one answer.
//
// The tenant may control the helper. Its answers use no more memory than the requests allow. An unexpected or
// malformed frame ends the link, and so does silence while an answer is due.

import { SandboxLostError } from "../script.ts";
import type { Channel, ChannelEvents, OpenChannel } from "../session.ts";
import { encodeFrame, type FrameField, frameReader, GREETING, type HelperFrame } from "./frames.ts";

/** The maximum number of concurrent requests. Further requests wait. */
const MAX_PENDING = 64;
const GREETING_MS = 5000;
const SILENCE_MS = 20_000;
/** The maximum number of bytes on standard error, where the helper prints nothing. */
const MAX_NOISE_BYTES = 64 * 1024;

interface Request<T> {
  /** An id from `newId`, for an operation that consists of several consecutive requests. */
  readonly id?: number;
  readonly letter: string;
  readonly fields: readonly FrameField[];
  /** The maximum size of the answer across all its frames, in bytes. */
  readonly maxBytes: number;
  /** Receives a part of the answer. An exception ends the link. */
  readonly onPart?: (fields: readonly Buffer[]) => void;
  /** Parses the answer. An exception ends the link. */
  readonly read: (fields: readonly Buffer[]) => T;
}

/** Thrown if the helper refuses a request. Contains an errno name or one of the helper's own codes. */
export class HelperError extends Error {
  override name = "HelperError";
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

interface PendingRequest extends Pick<Request<void>, "maxBytes"> {
  readonly id: number;
  readonly onPart: Request<void>["onPart"] | undefined;
  /** The number of bytes that remain of `maxBytes`. */
  left: number;
  resolve(fields: readonly Buffer[]): void;
  reject(error: unknown): void;
  /** True if the caller stopped waiting. The request keeps its slot until the helper answers. */
  isGivenUp: boolean;
}

export class Link {
  readonly #pending = new Map<number, PendingRequest>();
  readonly #slots = newSlots(MAX_PENDING);
  readonly #greeted = Promise.withResolvers<boolean>();
  readonly #lost = Promise.withResolvers<SandboxLostError>();
  readonly #silence = setTimeout(() => this.#onSilence(), SILENCE_MS).unref();
  #channel: Channel | undefined;
  #sent = Promise.resolve();
  #failure: SandboxLostError | undefined;
  #isGreeted = false;
  #noise = 0;
  #lastId = 0;

  /**
   * Starts a helper. Returns undefined if `script` does not start one. Throws the errors of `open` or the
   * signal's reason.
   */
  static async start(open: OpenChannel, script: string, signal: AbortSignal): Promise<Link | undefined> {
    const link = new Link();
    const fail = () => link.close(new Error("it sent no greeting"));
    const timer = setTimeout(fail, GREETING_MS);
    signal.addEventListener("abort", fail, { once: true });
    try {
      signal.throwIfAborted();
      await link.#open(open, script, signal);
      const isGreeted = await link.#greeted.promise;
      signal.throwIfAborted();
      return isGreeted ? link : undefined;
    } catch (error) {
      fail();
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", fail);
    }
  }

  async #open(open: OpenChannel, script: string, signal: AbortSignal): Promise<void> {
    const channel = await open(this.#events(), signal);
    this.#channel = channel;
    if (this.#failure) channel.close();
    else this.#send(Buffer.from(script));
  }

  /** Resolves with the reason once the link has ended. */
  get lost(): Promise<SandboxLostError> {
    return this.#lost.promise;
  }

  newId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0;
    while (this.#lastId === 0 || this.#pending.has(this.#lastId));
    return this.#lastId;
  }

  /**
   * Sends a request and returns its answer. Throws a `HelperError`, the signal's reason, or
   * `SandboxLostError`.
   */
  async ask<T>(request: Request<T>, signal: AbortSignal): Promise<T> {
    await this.#slots.take(signal);
    if (this.#failure) throw this.#failure;
    if (signal.aborted) {
      this.#slots.release();
      throw signal.reason;
    }
    const { id = this.newId(), maxBytes, onPart, read } = request;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const pending: PendingRequest = {
      id,
      maxBytes,
      onPart,
      left: maxBytes,
      isGivenUp: false,
      reject,
      resolve: (fields) => resolve(read(fields)),
    };
    const onAbort = () => {
      pending.isGivenUp = true;
      reject(signal.reason);
      this.drop(id);
    };
    if (this.#pending.size === 0) this.#silence.refresh();
    this.#pending.set(id, pending);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#send(encodeFrame(id, request.letter, request.fields));
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Makes the helper release everything that it keeps for an id. */
  drop(id: number): void {
    this.#send(encodeFrame(id, "x", []));
  }

  /**
   * Closes the link. Waiting calls throw `SandboxLostError`. Safe to repeat, but the first reason is kept.
   */
  close(reason: unknown): void {
    if (this.#failure) return;
    const failure = new SandboxLostError("its file helper ended", { cause: reason });
    this.#failure = failure;
    clearTimeout(this.#silence);
    this.#channel?.close();
    this.#greeted.resolve(false);
    this.#slots.fail(failure);
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
    this.#lost.resolve(failure);
  }

  #send(bytes: Uint8Array): void {
    this.#sent = this.#sent
      .then(() => (this.#failure ? undefined : this.#channel?.write(bytes)))
      .catch((error: unknown) => this.close(error));
  }

  #events(): ChannelEvents {
    const read = frameReader((frame) => this.#onFrame(frame));
    return {
      onOutput: (bytes) => {
        if (this.#failure) return;
        try {
          read(bytes);
        } catch (error) {
          this.close(error);
        }
      },
      onErrorOutput: (bytes) => {
        this.#noise += bytes.length;
        if (this.#noise > MAX_NOISE_BYTES) this.close(new Error("it prints on standard error"));
      },
      onClose: (error) => this.close(error ?? new Error("its channel was closed")),
    };
  }

  #onFrame(frame: HelperFrame): void {
    if (!this.#isGreeted) {
      this.#onGreeting(frame);
      return;
    }
    const pending = this.#pending.get(frame.id);
    if (!pending) throw new Error("it answered a request that was not sent");
    pending.left -= frame.bytes;
    if (pending.left < 0) throw new Error(`its answer is larger than ${pending.maxBytes} bytes`);
    this.#silence.refresh();
    if (frame.letter === "d") this.#onPart(pending, frame);
    else if (frame.letter !== "p") this.#onAnswer(pending, frame);
  }

  #onGreeting({ id, letter, fields }: HelperFrame): void {
    if (id !== 0 || letter !== "h" || fields.join() !== GREETING.join())
      throw new Error("its first frame is not a greeting");
    this.#isGreeted = true;
    this.#greeted.resolve(true);
  }

  #onPart({ onPart, isGivenUp }: PendingRequest, { fields }: HelperFrame): void {
    if (!onPart) throw new Error("it sent part of an answer that has no parts");
    if (!isGivenUp) onPart(fields);
  }

  #onAnswer({ id, resolve, reject }: PendingRequest, { letter, fields }: HelperFrame): void {
    if (letter === "k") resolve(fields);
    else if (letter === "e") reject(new HelperError(String(fields[0])));
    else throw new Error(`it sent an unknown frame \`${letter}\``);
    this.#pending.delete(id);
    this.#slots.release();
  }

  #onSilence(): void {
    if (this.#pending.size > 0) this.close(new Error(`it has not answered for ${SILENCE_MS} ms`));
  }
}

/** Creates a counting semaphore that serves callers in order of arrival. */
function newSlots(count: number) {
  const waiters = new Set<{ go(): void; fail(error: unknown): void }>();
  let free = count;
  let failure: Error | undefined;

  return {
    /** Takes a slot. Throws the signal's reason or the error passed to `fail`. */
    async take(signal: AbortSignal): Promise<void> {
      signal.throwIfAborted();
      if (failure) throw failure;
      if (free > 0) {
        free--;
        return;
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiter = { go: resolve, fail: reject };
      const onAbort = () => {
        waiters.delete(waiter);
        reject(signal.reason);
      };
      waiters.add(waiter);
      signal.addEventListener("abort", onAbort, { once: true });
      await promise.finally(() => signal.removeEventListener("abort", onAbort));
    },

    release(): void {
      const [next] = waiters;
      if (!next) {
        free++;
        return;
      }
      waiters.delete(next);
      next.go();
    },

    /** Rejects waiting and later calls. */
    fail(error: Error): void {
      failure = error;
      for (const waiter of waiters) waiter.fail(error);
      waiters.clear();
    },
  };
}
