// What only one transaction may work on at a time, of all processes. Two names may share a number: then one waits in vain.

import { hash } from "node:crypto";

/** The number of an advisory lock, as PostgreSQL takes it: a text, since it has 64 bits. */
export function lockNumber(...name: readonly string[]): string {
  const digest = hash("sha256", JSON.stringify(["skein", ...name]), "buffer");
  return digest.readBigInt64BE(0).toString();
}
