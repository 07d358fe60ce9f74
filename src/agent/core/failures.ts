// What kind of failure an error comes from: one of Skein's own stores, a machine without a resource, or anything else. A
// store's failure says nothing about the call in which it happened, so no model reads it as the call's result.

import { causesOf } from "../../lib/causes.ts";
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

/** By errno, with what is missing. */
const RESOURCES: Readonly<Record<string, string>> = {
  EMFILE: "file descriptors of the process",
  ENFILE: "file descriptors of the machine",
  ENOSPC: "room on the disk",
  EDQUOT: "the disk quota",
  EROFS: "a disk that can be written",
};

/** The resource whose lack made the error, or one of its causes; undefined for any other error. */
export function exhausted(error: unknown): string | undefined {
  for (const each of causesOf(error)) {
    const code = "code" in each ? String(each.code) : "";
    if (Object.hasOwn(RESOURCES, code)) return RESOURCES[code];
  }
  return undefined;
}
