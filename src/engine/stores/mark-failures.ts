// Marks the errors that failing stores throw, so no tool call returns one as its result. Appends of events are exempt,
// because tools never make them and there is one append per token.

import { markStoreFailure } from "../../agent/core/failures.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { type Method, wrappedMethods } from "../../lib/wrapped-methods.ts";

const PORTS = ["threads", "runs", "deferredCalls", "items", "documents", "quotas", "owners"] as const;

/** Wraps the stores so their failures can be recognized wherever they are caught. */
export function markFailures<S extends Stores>(stores: S): S {
  const ports = Object.entries(stores)
    .filter(([name]) => PORTS.some((each) => each === name))
    .map(([name, port]) => [name, wrappedMethods(port, (_, method) => markMethod(method))]);
  return { ...stores, ...Object.fromEntries(ports) };
}

const markMethod =
  (method: Method): Method =>
  (...args) => {
    try {
      const result = method(...args);
      if (result instanceof Promise) result.catch(markStoreFailure);
      return result;
    } catch (error) {
      markStoreFailure(error);
      throw error;
    }
  };
