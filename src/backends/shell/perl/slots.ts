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
