// Classifies failures: one of Skein's own stores failed, the machine lacks a resource, or anything else. A store's failure is
// unrelated to the call in which it happened, so models never read it as the call's result.

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

/** The text that a model reads for a call that threw `error`. */
export const failureText = (error: unknown) => (isStoreFailure(error) ? SERVER_FAILED : messageOf(error));

/** The exhausted resource, by errno. */
const RESOURCES: Readonly<Record<string, string>> = {
  EMFILE: "file descriptors of the process",
  ENFILE: "file descriptors of the machine",
  ENOSPC: "room on the disk",
  EDQUOT: "the disk quota",
  EROFS: "a disk that can be written",
};

/** The exhausted resource that caused the error or one of its causes; undefined for any other error. */
export function exhausted(error: unknown): string | undefined {
  for (const each of causesOf(error)) {
    const code = "code" in each ? String(each.code) : "";
    if (Object.hasOwn(RESOURCES, code)) return RESOURCES[code];
  }
  return undefined;
}
