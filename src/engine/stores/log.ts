// Keeps the newest entries of one run in memory, and wakes the readers that wait for more.
//
// A reader has a cursor instead of a queue, so a slow reader costs nothing, no matter how much is written.

import { AppError } from "../../agent/core/errors.ts";
import type { Cursor, LogEntry } from "../../agent/core/stores.ts";
import { eventsExpired } from "./errors.ts";
import type { LogWindow } from "./seen.ts";

/** The maximum number of entries, and of characters, in a batch. The limit that is reached first ends the batch. */
const BATCH = 64;
const BATCH_LENGTH = 256 * 1024;
/** The estimated overhead of an entry's objects, in bytes. */
const ENTRY_BYTES = 80;

export class Log {
  readonly #keep: number;
  readonly #maxBytes: number;
  readonly #waiting = new Set<() => void>();
  #entries: LogEntry[] = [];
  #last: number;
  #ended = false;
  #failure: AppError | undefined;
  #bytes = 0;
  #ringsSoon = false;

  /** Keeps the newest `keep` entries, or fewer if they exceed `maxBytes`. The next entry is `last + 1`. */
  constructor(keep: number, last = 0, maxBytes = Number.POSITIVE_INFINITY) {
    this.#keep = keep;
    this.#last = last;
    this.#maxBytes = maxBytes;
  }

  /** The seq of the newest entry, or 0 before the first. */
  get last(): number {
    return this.#last;
  }

  /** The numbers of the first and the last readable entry. Both are 0 if there are no entries. */
  get bounds(): { first: number; last: number } {
    const held = Math.min(this.#keep, this.#entries.length);
    return held === 0 ? { first: 0, last: 0 } : { first: this.#last - held + 1, last: this.#last };
  }

  /** The range of readable entries, for readers that return with a cursor. */
  get held(): LogWindow {
    const held = Math.min(this.#keep, this.#entries.length);
    const epochOf = (seq: number) => this.#entries.at(seq - this.#last - 1)?.epoch;
    return { first: this.#last - held + 1, last: this.#last, epochOf };
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The approximate number of bytes used by the entries in memory. */
  get bytes(): number {
    return this.#bytes;
  }

  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  /** Appends an entry, whose seq must be `last + 1`. Call `ring` or `ringSoon` to wake readers. */
  push(entry: LogEntry): void {
    this.#entries.push(entry);
    this.#last = entry.seq;
    this.#bytes += weightOf(entry);
    // Trims in bulk, so the cost per entry does not depend on how many entries are kept.
    const isLong = this.#entries.length >= this.#keep + Math.max(BATCH, this.#keep >> 3);
    if (isLong || this.#bytes > this.#maxBytes) this.#trim();
  }

  #trim(): void {
    let surplus = 0;
    for (const old of this.#entries) {
      if (this.#entries.length - surplus <= this.#keep && this.#bytes <= this.#maxBytes) break;
      this.#bytes -= weightOf(old);
      surplus++;
    }
    this.#entries.splice(0, surplus);
  }

  /** Records that entries up to `last` were written elsewhere. */
  advance(last: number): void {
    if (last <= this.#last) return;
    this.drop();
    this.#last = last;
  }

  /** Marks the end. No more entries will follow. */
  end(): this {
    this.#ended = true;
    this.ring();
    return this;
  }

  /** Releases the entries. */
  drop(): void {
    this.#entries = [];
    this.#bytes = 0;
  }

  /** Ends all readers with `reason`, including waiting ones. */
  close(reason: AppError): void {
    this.#failure = reason;
    this.ring();
  }

  ring(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  /** Wakes readers once for all entries written in this tick of the event loop. */
  ringSoon(): void {
    if (this.#ringsSoon || this.#waiting.size === 0) return;
    this.#ringsSoon = true;
    setImmediate(() => {
      this.#ringsSoon = false;
      this.ring();
    });
  }

  /** Returns at most one batch of entries after `after`, or undefined if they are no longer in memory. */
  take(after: number): readonly LogEntry[] | undefined {
    if (this.#failure) throw this.#failure;
    const behind = this.#last - after;
    if (behind > this.#keep || behind > this.#entries.length) return undefined;
    return firstBatch(this.#entries, this.#entries.length - behind);
  }

  /** Calls `wake` once, at the next ring. */
  await(wake: () => void): void {
    if (this.#failure) throw this.#failure;
    this.#waiting.add(wake);
  }

  leave(wake: () => void): void {
    this.#waiting.delete(wake);
  }
}

/** Returns the batch that begins at `from`. */
export function firstBatch(entries: readonly LogEntry[], from: number): readonly LogEntry[] {
  let to = from;
  for (let length = 0; to < entries.length && to < from + BATCH && length < BATCH_LENGTH; to++)
    length += entries[to]?.json.length ?? 0;
  return entries.slice(from, to);
}

function weightOf({ json }: LogEntry): number {
  return Buffer.byteLength(json) + ENTRY_BYTES;
}

/** Throws `invalid_request` unless `after` is the number of an entry, or 0. */
export function cursorOf(after: number | Cursor): Cursor {
  const cursor = typeof after === "number" ? { seq: after } : after;
  if (Number.isSafeInteger(cursor.seq) && cursor.seq >= 0) return cursor;
  throw new AppError(
    "invalid_request",
    `\`${cursor.seq}\` is not the number of an event. Numbers start at 1; use 0 for the beginning.`,
  );
}

/** The position at which a reader begins, and the log that it reads. */
export interface ReadStart {
  readonly log: Log;
  readonly after: Cursor;
  /** Returns at least one entry after a cursor that the log no longer contains, or throws. */
  older(after: Cursor): readonly LogEntry[] | Promise<readonly LogEntry[]>;
}

/**
 * Yields batches from the position that `open` returns, first stored and then live entries, until the log ends or
 * `signal` aborts. Throws the errors of `open`.
 */
export async function* follow(
  open: () => ReadStart | Promise<ReadStart>,
  signal: AbortSignal,
): AsyncGenerator<readonly LogEntry[], void, void> {
  const opened = open();
  // Reads a log without an `await` if it is available immediately.
  const { log, after, older } = opened instanceof Promise ? await opened : opened;
  if (after.seq > log.last) throw eventsExpired(after.seq);

  let wake = () => {};
  const onAbort = () => wake();
  signal.addEventListener("abort", onAbort);
  try {
    for (let cursor = after; !signal.aborted; ) {
      if (cursor.seq < log.last) {
        const batch = log.take(cursor.seq) ?? (await older(cursor));
        cursor = batch.at(-1) ?? cursor;
        yield batch;
      } else if (log.ended) {
        return;
      } else {
        // No `await` happens between checking the log and registering for its next ring, so no ring is missed.
        await new Promise<void>((resolve) => {
          wake = resolve;
          log.await(resolve);
        });
      }
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    log.leave(wake);
  }
}
