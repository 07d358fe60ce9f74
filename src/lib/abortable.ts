// Waiting that ends at an abort, though what it waits for stays silent.

/**
 * Yields what `source` yields and returns its result. After an abort `source` has `graceMs` to end by itself; then the
 * signal's reason is thrown without waiting for it.
 */
export async function* untilAborted<E, T>(
  source: AsyncIterable<E, T>,
  signal: AbortSignal,
  graceMs = 0,
): AsyncGenerator<E, T, void> {
  const iterator = source[Symbol.asyncIterator]();
  let isOver = false;
  let giveUp = () => {};
  let timer: NodeJS.Timeout | undefined;
  const expire = () => {
    isOver = true;
    giveUp();
  };
  const onAbort = () => {
    if (graceMs === 0) expire();
    else timer = setTimeout(expire, graceMs);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    for (;;) {
      if (isOver) throw signal.reason;
      const item = await new Promise<IteratorResult<E, T>>((resolve, reject) => {
        giveUp = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (item.done) return item.value;
      yield item.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
    // A source that is stuck never answers this either.
    void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** What `work` resolves with, unless `signal` aborts first: then throws its reason. `work` goes on. */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
