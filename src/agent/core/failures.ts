// Distinguishes failures of Skein's own stores and missing resources of the machine from all other failures. A store's
// failure is unrelated to the call during which it occurs, so models never see it as the call's result.

import { causesOf } from "../../lib/causes.ts";
import { AppError, messageOf, SERVER_FAILED } from "./errors.ts";

const FAILURES = new WeakSet<Error>();

/**
 * Call this with each error that a store throws. Ignores refusals such as `not_found` and `limit_exceeded`,
 * which are not failures.
 */
export function markStoreFailure(error: unknown): void {
  if (!(error instanceof Error)) return;
  const isRefusal = error instanceof AppError && error.code !== "unavailable" && error.code !== "internal";
  if (!isRefusal) FAILURES.add(error);
}

/** True if the error, or one of its causes, is a failure of a store. */
export function isStoreFailure(error: unknown): boolean {
  return causesOf(error).some((each) => FAILURES.has(each));
}

/** Returns the text that a model receives for a call that threw `error`. */
export const failureText = (error: unknown) => (isStoreFailure(error) ? SERVER_FAILED : messageOf(error));

/** The exhausted resource for each errno. */
const RESOURCES: Readonly<Record<string, string>> = {
  EMFILE: "file descriptors of the process",
  ENFILE: "file descriptors of the machine",
  ENOSPC: "disk space",
  EDQUOT: "the disk quota",
  EROFS: "a writable disk",
};

/**
 * Returns the exhausted resource that caused the error or one of its causes, or undefined for any other
 * error.
 */
export function exhausted(error: unknown): string | undefined {
  for (const each of causesOf(error)) {
    const code = "code" in each ? String(each.code) : "";
    if (Object.hasOwn(RESOURCES, code)) return RESOURCES[code];
  }
  return undefined;
}
