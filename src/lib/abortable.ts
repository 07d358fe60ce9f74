// Waiting that can be given up while what is waited for keeps silent.

/** What `source` yields, until `signal` aborts: then throws its reason, without waiting for `source`. */
export async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let giveUp = () => {};
  const onAbort = () => giveUp();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const item = await new Promise<IteratorResult<T>>((resolve, reject) => {
        giveUp = () => reject(signal.reason);
        iterator.next().then(resolve, reject);
      });
      if (item.done) return;
      yield item.value;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // One that is stuck never answers this either.
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
