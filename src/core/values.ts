// What the hooks and tools of one run leave for each other: values of any kind, never stored, gone with the run.

/** Whoever holds the key may read and write; two keys of one name are two keys. */
export interface ValueKey<T> {
  readonly name: string;
  /** Never there: it only carries the type. */
  readonly type?: T;
}

export const valueKey = <T>(name: string): ValueKey<T> => ({ name });

export interface Values {
  get<T>(key: ValueKey<T>): T | undefined;
  set<T>(key: ValueKey<T>, value: T): void;
  has(key: ValueKey<unknown>): boolean;
  /** False when there was none. */
  delete(key: ValueKey<unknown>): boolean;
}

export function createValues(): Values {
  const values = new Map<ValueKey<unknown>, unknown>();
  return {
    // What lies under a key was put there with the key's own type.
    get: <T>(key: ValueKey<T>) => values.get(key) as T | undefined,
    set: (key, value) => void values.set(key, value),
    has: (key) => values.has(key),
    delete: (key) => values.delete(key),
  };
}
