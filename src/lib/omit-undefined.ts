// Removes `undefined` values, for types whose optional keys must not contain them.

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Returns `value` without the keys whose value is `undefined`. */
export function omitUndefined<T extends object>(value: T): Defined<T> {
  // Optional keys stay optional. A loop is used because each run calls this dozens of times.
  const kept: Partial<Defined<T>> = {};
  for (const key of Object.keys(value) as (keyof T)[]) {
    const each = value[key];
    if (each !== undefined) kept[key] = each as Defined<T>[keyof T];
  }
  return kept as Defined<T>;
}
