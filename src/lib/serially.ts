// Work on the same thing, one after the other; on different things, side by side.

/** Returns a function that runs `work` when all earlier work under `key` has ended, however it ended. */
export function serially(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  /** The last work under each key; a key goes when its work is done. */
  const last = new Map<string, Promise<void>>();
  return async (key, work) => {
    const before = last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    last.set(key, promise);
    await before;
    try {
      return await work();
    } finally {
      resolve();
      if (last.get(key) === promise) last.delete(key);
    }
  };
}
