// Locks that only one transaction across all processes can hold at a time. If two names share a number, one of them
// waits needlessly.

import { hash } from "node:crypto";

/** Returns the number of an advisory lock. The number is returned as a string because it has 64 bits. */
export function lockNumber(...name: readonly string[]): string {
  const digest = hash("sha256", JSON.stringify(["skein", ...name]), "buffer");
  return digest.readBigInt64BE(0).toString();
}
