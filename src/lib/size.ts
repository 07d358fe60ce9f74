// Amounts of bytes as people write them: "512m", "1g", "64k", or a number of bytes. Units are powers of 1024.

import { z } from "zod";

const UNITS: Readonly<Record<string, number>> = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };
const WRITTEN = /^(\d+(?:\.\d+)?)\s*(b|k|m|g|t)?(?:i?b)?$/i;

/** Whole bytes, or nothing when it is no such amount. */
export function parseSize(written: string | number): number | undefined {
  const [, amount, unit = "b"] = WRITTEN.exec(String(written)) ?? [];
  const bytes = Math.round(Number(amount) * (UNITS[unit.toLowerCase()] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** In a configuration; its value is in bytes. */
export const Size = z.union([z.string(), z.number()]).transform((written, context) => {
  const bytes = parseSize(written);
  if (bytes !== undefined) return bytes;
  context.addIssue({ code: "custom", message: "must be a size such as 512m or 2g, or a number of bytes" });
  return z.NEVER;
});
