// The one shape of everything that takes time.

import type { StreamEvent } from "../../protocol/event.ts";

/**
 * Yields events while it works, returns its result, throws its failure.
 * A layer passes events on with `return yield* next(request)`.
 */
export type Stream<T, E = StreamEvent> = AsyncGenerator<E, T, void>;

/**
 * Takes a delta at once, past the layers around a model call; false when it is to be yielded, as every one is without a sink.
 * A layer that gives it to `next` does not see the deltas that it takes, unless it looks with `tapDeltas`.
 */
export type DeltaSink = (delta: StreamEvent) => boolean;

const joined = new WeakSet<StreamEvent>();

/** Says that nothing is done between `event` and the next one: both may be stored in one write, and only the next is waited for. */
export function withNext<E extends StreamEvent>(event: E): E {
  joined.add(event);
  return event;
}

export const isWithNext = (event: StreamEvent) => joined.has(event);

/** What an author may return where the answer can come at once, later, or with events on the way. */
export type MaybeStream<T> = T | Promise<T> | Stream<T>;

export const toStream = <T>(work: MaybeStream<T>): Stream<T> => (isStream(work) ? work : silent(work));

async function* silent<T>(work: T | Promise<T>): Stream<T> {
  return await work;
}

export function isStream<T>(work: MaybeStream<T>): work is Stream<T> {
  return typeof work === "object" && work !== null && Symbol.asyncIterator in work;
}

/** The result alone, for a caller to whom the events do not matter. */
export async function drain<T, E>(stream: Stream<T, E>): Promise<T> {
  for (;;) {
    const item = await stream.next();
    if (item.done) return item.value;
  }
}

/**
 * Passes `stream` on. Calls `onPull` before it asks for an event and `onEvent` before it yields one; what `onEvent` throws
 * ends the stream.
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

/** Passes the events of `stream` on, and returns what `f` makes of its result. */
export function mapResult<T, R, E>(stream: Stream<T, E>, f: (result: T) => R): Stream<R, E> {
  const pass = (item: IteratorResult<E, T>): IteratorResult<E, R> =>
    item.done ? { done: true, value: f(item.value) } : item;
  return readWith(stream, () => stream.next().then(pass));
}

/** `stream`, read with `next`. A plain iterator: a generator would cost a layer for every event. */
function readWith<T, R, E>(stream: Stream<T, E>, next: Stream<R, E>["next"]): Stream<R, E> {
  return {
    next,
    // What `return` and `throw` resolve with is read by no one.
    return: (value) => stream.return(value as never) as Promise<IteratorResult<E, never>>,
    throw: (error) => stream.throw(error) as Promise<IteratorResult<E, never>>,
    [Symbol.asyncIterator]() {
      return this;
    },
    [Symbol.asyncDispose]: () => close(stream),
  };
}

/** `deltas`, which calls `onDelta` after each one that it has taken. */
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

/** Replaces each event by those that `f` returns for it. The result and the failure stay as they are. */
export async function* mapEvents<T, A, B>(stream: Stream<T, A>, f: (event: A) => readonly B[]): Stream<T, B> {
  try {
    for (;;) {
      const item = await stream.next();
      if (item.done) return item.value;
      // Not `yield*`, which wraps every array in an iterator of its own.
      for (const event of f(item.value)) yield event;
    }
  } finally {
    await close(stream);
  }
}

/** `stream`, for a reader that waits for nothing when it leaves before the end. */
export function leavable<T, E>(stream: Stream<T, E>): Stream<T, E> {
  return {
    ...readWith(stream, () => stream.next()),
    async return(value) {
      leave(stream);
      return { done: true, value: await value };
    },
  };
}

/** Ends a stream that is not read to its end, at its next step. No one waits for that, nor hears of a failure in it. */
export function leave<T, E>(stream: Stream<T, E>): void {
  close(stream).catch(() => {});
}

/** Ends a stream that is not read to its end. What `return` resolves with is not read. */
async function close<T, E>(stream: Stream<T, E>): Promise<void> {
  await stream.return(undefined as never);
}
