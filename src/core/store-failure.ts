// Tells failures of Skein's own stores from what tools, hooks and other servers throw. Such a failure says nothing of the
// call in which it happened, so no model reads it as the call's result.

import { causesOf } from "../lib/causes.ts";
import { AppError, messageOf, SERVER_FAILED } from "./errors.ts";

const FAILURES = new WeakSet<Error>();

/** To be called with what a store throws. Refusals, such as `not_found` or `limit_exceeded`, are no failures. */
export function markStoreFailure(error: unknown): void {
  if (!(error instanceof Error)) return;
  const isRefusal = error instanceof AppError && error.code !== "unavailable" && error.code !== "internal";
  if (!isRefusal) FAILURES.add(error);
}

/** Whether a store failed, also when another error was made of its failure. */
export function isStoreFailure(error: unknown): boolean {
  return causesOf(error).some((each) => FAILURES.has(each));
}

/** The text that a model reads for a call that threw `error`. */
export const failureText = (error: unknown) => (isStoreFailure(error) ? SERVER_FAILED : messageOf(error));
