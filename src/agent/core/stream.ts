// The common type of all long operations.

import type { StreamEvent } from "../../protocol/event.ts";

/**
 * Yields events while working, returns the result and throws any failure. To pass events on, a layer uses
 * `return yield* next(request)`.
 */
export type Stream<T, E = StreamEvent> = AsyncGenerator<E, T, void>;

/**
 * Takes a delta at once, bypassing the layers around a model call. Returns false if the delta must be yielded
 * instead. A layer that passes its sink to `next` does not see the deltas that the sink takes, unless it
 * observes them with `tapDeltas`.
 */
export type DeltaSink = (delta: StreamEvent) => boolean;

const joined = new WeakSet<StreamEvent>();

/**
 * Marks that nothing happens between `event` and the next one, so the consumer can store both in one write and await only the next.
 */
export function withNext<E extends StreamEvent>(event: E): E {
  joined.add(event);
  return event;
}

export const isWithNext = (event: StreamEvent) => joined.has(event);

/** A result that an author can return at once, later, or after some events. */
export type MaybeStream<T> = T | Promise<T> | Stream<T>;

export const toStream = <T>(work: MaybeStream<T>): Stream<T> => (isStream(work) ? work : silent(work));

async function* silent<T>(work: T | Promise<T>): Stream<T> {
  return await work;
}

export function isStream<T>(work: MaybeStream<T>): work is Stream<T> {
  return typeof work === "object" && work !== null && Symbol.asyncIterator in work;
}

/** Returns only the result, for callers that ignore the events. */
export async function drain<T, E>(stream: Stream<T, E>): Promise<T> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return item.value;
  }
}

/**
 * Passes on the events and the result of `stream`. Calls `onPull` before it requests an event and `onEvent`
 * before it yields one. An error from `onEvent` ends the stream.
 */
export function tap<T, E>(
  stream: Stream<T, E>,
  onEvent: (event: E) => void,
  onPull?: () => void,
): Stream<T, E> {
  const pass = (item: IteratorResult<E, T>) => {
    try {
      if (!item.done) onEvent(item.value);
      return item;
    } catch (error) {
      return close(stream).then(() => Promise.reject(error));
    }
  };
  return readWith(stream, () => {
    onPull?.();
    return stream.next().then(pass);
  });
}

/** Passes on the events of `stream` and returns its result mapped by `f`. */
export function mapResult<T, R, E>(stream: Stream<T, E>, f: (result: T) => R): Stream<R, E> {
  const pass = (item: IteratorResult<E, T>): IteratorResult<E, R> =>
    item.done ? { done: true, value: f(item.value) } : item;
  return readWith(stream, () => stream.next().then(pass));
}

/**
 * Returns a stream that behaves like `stream` but has a different `next`. It is a plain iterator, because a
 * generator would cost one layer per event.
 */
function readWith<T, R, E>(stream: Stream<T, E>, next: Stream<R, E>["next"]): Stream<R, E> {
  return {
    next,
    // No one reads the values that `return` and `throw` resolve to.
    return: (value) => stream.return(value as never) as Promise<IteratorResult<E, never>>,
    throw: (error) => stream.throw(error) as Promise<IteratorResult<E, never>>,
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: () => close(stream),
  };
}

/** Wraps `deltas` to call `onDelta` after each delta that it takes. */
export function tapDeltas(
  deltas: DeltaSink | undefined,
  onDelta: (delta: StreamEvent) => void,
): DeltaSink | undefined {
  if (!deltas) return undefined;
  return (delta) => {
    const isTaken = deltas(delta);
    if (isTaken) onDelta(delta);
    return isTaken;
  };
}

/** Replaces each event with the events that `f` returns for it. Does not change the result or the failure. */
export async function* mapEvents<T, A, B>(stream: Stream<T, A>, f: (event: A) => readonly B[]): Stream<T, B> {
  try {
    for (;;) {
      const item = await stream.next();
      if (item.done) return item.value;
      // Avoids `yield*`, which wraps every array in another iterator.
      for (const event of f(item.value)) yield event;
    }
  } finally {
    await close(stream);
  }
}

/** Wraps `stream` so that a reader can leave early without waiting. */
export function leavable<T, E>(stream: Stream<T, E>): Stream<T, E> {
  return {
    ...readWith(stream, () => stream.next()),
    async return(value) {
      leave(stream);
      return { done: true, value: await value };
    },
  };
}

/**
 * Ends a stream that is not read to its end. The stream ends at its next step. Returns without waiting for
 * that step, and ignores failures.
 */
export function leave<T, E>(stream: Stream<T, E>): void {
  close(stream).catch(() => {});
}

/** Ends a stream that is not read to its end. No one reads the value that `return` resolves to. */
async function close<T, E>(stream: Stream<T, E>): Promise<void> {
  await stream.return(undefined as never);
}
