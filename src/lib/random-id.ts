// Random identifiers: 22 letters and digits, 131 bits, safe in URLs, file names and SSE ids.

import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LENGTH = 22;
/** The largest multiple of 62 that fits a byte: bytes from here on would favour the first letters. */
const FAIR = 248;

export function randomId(): string {
  let id = "";
  while (id.length < LENGTH) {
    for (const byte of randomBytes(LENGTH)) {
      if (byte < FAIR && id.length < LENGTH) id += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return id;
}
