// Values that are made once for an object, and kept as long as it is.

/** Returns a function that calls `make` once for each object. What throws is made again. */
export function oncePer<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const kept = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const found = kept.get(key) ?? { value: make(key) };
    kept.set(key, found);
    return found.value;
  };
}
