// The line to a helper: requests out, answers in, many at once.
//
// The other end may be in a tenant's hands. Whatever it sends, it gets no more memory than its requests allow, and
// a frame that nobody asked for, or that makes no sense, ends the line. So does silence while an answer is due.

import { SandboxLostError } from "../script.ts";
import type { Channel, ChannelEvents, OpenChannel } from "../session.ts";
import { encodeFrame, type Field, type Frame, frameReader, GREETING } from "./frames.ts";

/** Requests that are under way at once; more of them wait. */
const MAX_ASKED = 64;
const GREETING_MS = 5000;
const SILENCE_MS = 20_000;
/** It has nothing to say on standard error. */
const MAX_NOISE_BYTES = 64 * 1024;

interface Request<T> {
  /** From `newId`. Requests of one id come one after another. */
  readonly id: number;
  readonly letter: string;
  readonly fields: readonly Field[];
  /** Of all frames that answer it. */
  readonly maxBytes: number;
  /** Takes a part of the answer. What it throws ends the line. */
  readonly onPart?: (fields: readonly Buffer[]) => void;
  /** Makes something of the answer. What it throws ends the line. */
  readonly read: (fields: readonly Buffer[]) => T;
}

/** What the helper says when it cannot do as it is asked: the name of an errno, or a word of its own. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

interface Asked extends Pick<Request<void>, "id" | "maxBytes"> {
  readonly onPart: Request<void>["onPart"] | undefined;
  /** Of `maxBytes`. */
  left: number;
  resolve(fields: readonly Buffer[]): void;
  reject(error: unknown): void;
  /** Nobody waits for it any more. Its slot is taken until it is answered all the same. */
  isGivenUp: boolean;
}

export class Link {
  readonly #asked = new Map<number, Asked>();
  readonly #slots = newSlots(MAX_ASKED);
  readonly #greeted = Promise.withResolvers<boolean>();
  readonly #lost = Promise.withResolvers<SandboxLostError>();
  readonly #silence = setTimeout(() => this.#onSilence(), SILENCE_MS).unref();
  #channel: Channel | undefined;
  #sent = Promise.resolve();
  #failure: SandboxLostError | undefined;
  #isGreeted = false;
  #noise = 0;
  #lastId = 0;

  /** Undefined when no helper answers to `script`. Throws what `open` throws, or the signal's reason. */
  static async start(open: OpenChannel, script: string, signal: AbortSignal): Promise<Link | undefined> {
    const link = new Link();
    const giveUp = () => link.close(new Error("no greeting came"));
    const timer = setTimeout(giveUp, GREETING_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      signal.throwIfAborted();
      await link.#open(open, script, signal);
      const isGreeted = await link.#greeted.promise;
      signal.throwIfAborted();
      return isGreeted ? link : undefined;
    } catch (error) {
      giveUp();
      throw error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    }
  }

  async #open(open: OpenChannel, script: string, signal: AbortSignal): Promise<void> {
    const channel = await open(this.#events(), signal);
    this.#channel = channel;
    if (this.#failure) channel.close();
    else this.#send(Buffer.from(script));
  }

  /** Resolves once nothing can be asked any more, with the reason. */
  get lost(): Promise<SandboxLostError> {
    return this.#lost.promise;
  }

  newId(): number {
    do this.#lastId = (this.#lastId + 1) >>> 0;
    while (this.#lastId === 0 || this.#asked.has(this.#lastId));
    return this.#lastId;
  }

  /** Throws a `Refusal`, the signal's reason, or `SandboxLostError`. */
  async ask<T>(request: Request<T>, signal: AbortSignal): Promise<T> {
    await this.#slots.take(signal);
    if (this.#failure) throw this.#failure;
    if (signal.aborted) {
      this.#slots.release();
      throw signal.reason;
    }
    const { id, maxBytes, onPart, read } = request;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const asked: Asked = {
      ...{ id, maxBytes, onPart, left: maxBytes, isGivenUp: false, reject },
      resolve: (fields) => resolve(read(fields)),
    };
    const onAbort = () => {
      asked.isGivenUp = true;
      reject(signal.reason);
      this.giveUp(id);
    };
    if (this.#asked.size === 0) this.#silence.refresh();
    this.#asked.set(id, asked);
    signal.addEventListener("abort", onAbort, { once: true });
    this.#send(encodeFrame(id, request.letter, request.fields));
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** Has the helper let go of all that it holds for an id. */
  giveUp(id: number): void {
    this.#send(encodeFrame(id, "x", []));
  }

  /** Whoever waits gets `SandboxLostError`. Safe to repeat: the first reason stays. */
  close(reason: unknown): void {
    if (this.#failure) return;
    const failure = new SandboxLostError("its file helper ended", { cause: reason });
    this.#failure = failure;
    clearTimeout(this.#silence);
    this.#channel?.close();
    this.#greeted.resolve(false);
    this.#slots.fail(failure);
    for (const { reject } of this.#asked.values()) reject(failure);
    this.#asked.clear();
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
        if (this.#noise > MAX_NOISE_BYTES) this.close(new Error("it is noisy"));
      },
      onClose: (error) => this.close(error ?? new Error("the channel was closed")),
    };
  }

  #onFrame(frame: Frame): void {
    if (!this.#isGreeted) {
      this.#onGreeting(frame);
      return;
    }
    const asked = this.#asked.get(frame.id);
    if (!asked) throw new Error("an answer to nothing");
    asked.left -= frame.bytes;
    if (asked.left < 0) throw new Error(`more than ${asked.maxBytes} bytes in answer`);
    this.#silence.refresh();
    if (frame.letter === "d") this.#onPart(asked, frame);
    else if (frame.letter !== "p") this.#onAnswer(asked, frame);
  }

  #onGreeting({ id, letter, fields }: Frame): void {
    if (id !== 0 || letter !== "h" || fields.join() !== GREETING.join()) throw new Error("no greeting");
    this.#isGreeted = true;
    this.#greeted.resolve(true);
  }

  #onPart({ onPart, isGivenUp }: Asked, { fields }: Frame): void {
    if (!onPart) throw new Error("a part of what has none");
    if (!isGivenUp) onPart(fields);
  }

  #onAnswer({ id, resolve, reject }: Asked, { letter, fields }: Frame): void {
    if (letter === "k") resolve(fields);
    else if (letter === "e") reject(new Refusal(String(fields[0])));
    else throw new Error(`a frame \`${letter}\``);
    this.#asked.delete(id);
    this.#slots.release();
  }

  #onSilence(): void {
    if (this.#asked.size > 0) this.close(new Error(`no answer for ${SILENCE_MS} ms`));
  }
}

// So many at once; who comes later waits, in the order of coming.

interface Slots {
  /** Throws the signal's reason when it aborts first, or what `fail` was called with. */
  take(signal: AbortSignal): Promise<void>;
  /** By who has taken one, once. */
  release(): void;
  /** Nobody gets one any more. */
  fail(error: Error): void;
}

interface Waiter {
  go(): void;
  fail(error: unknown): void;
}

export function newSlots(count: number): Slots {
  const waiters = new Set<Waiter>();
  let free = count;
  let failure: Error | undefined;

  return {
    async take(signal) {
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

    release() {
      const [next] = waiters;
      if (!next) {
        free++;
        return;
      }
      waiters.delete(next);
      next.go();
    },

    fail(error) {
      failure = error;
      for (const waiter of waiters) waiter.fail(error);
      waiters.clear();
    },
  };
}
