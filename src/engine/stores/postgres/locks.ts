// Locks that only one transaction of all processes holds at a time. Two names may share a number: then one waits needlessly.

import { hash } from "node:crypto";

/** The number of an advisory lock, as PostgreSQL takes it: a text, since it has 64 bits. */
export function lockNumber(...name: readonly string[]): string {
  const digest = hash("sha256", JSON.stringify(["skein", ...name]), "buffer");
  return digest.readBigInt64BE(0).toString();
}
