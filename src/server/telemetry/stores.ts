// Measures the calls to a store. Appends of events are not measured, because each token causes one.

import { hasCode } from "../../agent/core/errors.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { type Method, wrappedMethods } from "../../lib/wrapped-methods.ts";
import type { Families } from "./families.ts";

type StoreMetrics = Pick<Families, "storeSeconds" | "storeErrors">;

/** Returns the same stores, but measures each call. The operations are named after the ports. */
export function timed<S extends Stores>(stores: S, to: StoreMetrics): S {
  return {
    ...stores,
    threads: timedPort("threads", stores.threads, to),
    runs: timedPort("runs", stores.runs, to),
    deferredCalls: timedPort("deferred_calls", stores.deferredCalls, to),
    items: timedPort("items", stores.items, to),
  };
}

const timedPort = <P extends object>(name: string, port: P, to: StoreMetrics): P =>
  wrappedMethods(port, (key, method) => timedMethod(`${name}.${key}`, method, to));

const timedMethod =
  (operation: string, method: Method, { storeSeconds, storeErrors }: StoreMetrics): Method =>
  (...args) => {
    const begun = performance.now();
    const result = method(...args);
    if (!(result instanceof Promise)) return result;
    result.then(
      () => storeSeconds.observe({ operation }, (performance.now() - begun) / 1000),
      (error: unknown) => {
        if (hasCode(error, "unavailable")) storeErrors.inc({ operation });
      },
    );
    return result;
  };
