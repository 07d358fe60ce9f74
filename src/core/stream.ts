// The one shape of everything that takes time.

import type { StreamEvent } from "./event.ts";

/**
 * Yields events while it works, returns its result, throws its failure.
 * A layer passes events on with `return yield* next(request)`.
 */
export type Stream<T, E = StreamEvent> = AsyncGenerator<E, T, void>;

/** What an author may return where the answer can come at once, later, or with events on the way. */
export type Eventually<T> = T | Promise<T> | Stream<T>;

export async function* toStream<T>(work: Eventually<T>): Stream<T> {
  return isStream(work) ? yield* work : await work;
}

function isStream<T>(work: Eventually<T>): work is Stream<T> {
  return typeof work === "object" && work !== null && Symbol.asyncIterator in work;
}

/** The result alone, for a caller to whom the events do not matter. */
export async function drain<T, E>(stream: Stream<T, E>): Promise<T> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return item.value;
  }
}
