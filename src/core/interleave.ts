// Several streams as one.

import type { Stream } from "./stream.ts";

interface Arrival<T, E> {
  readonly index: number;
  /** Absent when the stream failed with `error`. */
  readonly item?: IteratorResult<E, T>;
  readonly error?: unknown;
}

/**
 * Runs streams side by side, at most `limit` at a time; yields what they yield as it comes and returns their
 * results in the order given. A stream goes on only when its last event was taken: what a consumer does with
 * an event is done before the stream's next step. The first failure ends all of them.
 */
export async function* interleave<T, E>(streams: readonly Stream<T, E>[], limit: number): Stream<T[], E> {
  const results = new Array<T>(streams.length);
  const arrived: Arrival<T, E>[] = [];
  let wake = () => {};
  let started = 0;

  const arrive = (arrival: Arrival<T, E>) => {
    arrived.push(arrival);
    wake();
  };
  const pull = (index: number, stream: Stream<T, E>) =>
    stream.next().then(
      (item) => arrive({ index, item }),
      (error: unknown) => arrive({ index, error }),
    );
  const startNext = () => {
    const stream = streams[started];
    if (stream) void pull(started++, stream);
  };

  try {
    for (let slot = 0; slot < limit; slot++) startNext();
    for (let live = streams.length; live > 0; ) {
      const next = arrived.shift();
      if (!next) {
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      const { index, item, error } = next;
      if (!item) throw error;
      if (item.done) {
        results[index] = item.value;
        live--;
        startNext();
      } else {
        yield item.value;
        const stream = streams[index];
        if (stream) void pull(index, stream);
      }
    }
    return results;
  } finally {
    // A stream that is busy ends when it gets to it; nobody waits for one that was given up.
    for (const stream of streams) stream.return(undefined as never).catch(() => {});
  }
}
