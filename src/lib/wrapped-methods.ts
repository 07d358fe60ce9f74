// Wraps the methods of a port, for example to measure them or to observe their errors.

export type Method = (...args: unknown[]) => unknown;

/** Calls `around` once for each method that is used, with the method's name. */
export function wrappedMethods<P extends object>(
  port: P,
  around: (name: string, method: Method) => Method,
): P {
  const known = new Map<PropertyKey, Method>();
  return new Proxy(port, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== "function") return value;
      let method = known.get(key);
      if (!method) {
        method = around(String(key), value.bind(target));
        known.set(key, method);
      }
      return method;
    },
  });
}
