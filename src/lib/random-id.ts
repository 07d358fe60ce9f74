// Random identifiers of 22 letters and digits (131 bits), which are safe in URLs, file names and SSE ids.

import { randomFillSync } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH = 22;
/** The largest multiple of 62 that is less than 256. Larger bytes would make the first letters more likely. */
const FAIR = 248;

/** Random bytes requested in bulk, because one request costs as much as two hundred bytes. Each byte is used once. */
const pool = new Uint8Array(4096);
let used = pool.length;

function randomByte(): number {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const byte = pool[used] ?? FAIR;
  pool[used++] = FAIR;
  return byte;
}

export function randomId(): string {
  let id = "";
  while (id.length < LENGTH) {
    const byte = randomByte();
    if (byte < FAIR) id += ALPHABET.charAt(byte % ALPHABET.length);
  }
  return id;
}
