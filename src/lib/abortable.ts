// An iterable that can be given up while it keeps silent.

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
