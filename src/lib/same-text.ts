// Compares secrets.

import { timingSafeEqual } from "node:crypto";

/** How long it takes tells nothing about where two texts of one length differ. */
export function isSameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
