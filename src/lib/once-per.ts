// Creates a value once per object and keeps it for as long as the object exists.

/** Returns a function that calls `make` once per object. After an error, the next call tries again. */
export function oncePer<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const kept = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const found = kept.get(key) ?? { value: make(key) };
    kept.set(key, found);
    return found.value;
  };
}
