// For types whose optional keys must not hold `undefined`.

/** `value` without the keys that hold `undefined`. */
export function omitUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // The filter removed every undefined; optional keys stay optional.
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never;
}
