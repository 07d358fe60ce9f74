// Optional keys are either there or not: never there with `undefined`.

/** `value` without the keys that hold `undefined`. */
export function omitUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // What is left has no undefined in it; an optional key stays optional.
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as never;
}
