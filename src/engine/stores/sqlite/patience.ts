// Inside a run, calls wait while the file cannot be written, for example because the disk is full. They wait for as
// long as a lease lasts in other stores.

import { setTimeout as sleep } from "node:timers/promises";
import { type Method, wrappedMethods } from "../../../lib/wrapped-methods.ts";
import type { Deadlines } from "../shared/outages.ts";
import { mayPass } from "./node-sqlite.ts";

/** The number of milliseconds between two attempts. */
export const PAUSE_MS = 250;

/** Wraps a port. Every method is one transaction, so it can be called again after a failure. */
export const patient = <Port extends object>(port: Port, deadlines: Deadlines): Port =>
  wrappedMethods(port, (_, method) => repeated(method, deadlines));

const repeated =
  (method: Method, deadlines: Deadlines): Method =>
  (...args) => {
    const result = method(...args);
    if (!(result instanceof Promise) || !deadlines.isInRun) return result;
    const until = performance.now() + deadlines.ms;
    const again = async (error: unknown): Promise<unknown> => {
      if (!mayPass(error) || performance.now() >= until) throw error;
      await sleep(PAUSE_MS);
      return Promise.resolve(method(...args)).catch(again);
    };
    return result.catch(again);
  };
