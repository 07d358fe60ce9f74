// A port whose methods do something more: measure, or look at what they throw.

export type Method = (...args: unknown[]) => unknown;

/** `around` is called once for each method that is used, with its name. */
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
