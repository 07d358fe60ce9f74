// Durations and sizes as people write them.

import { z } from "zod";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WRITTEN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
/** The limit of Node's timers, nearly 25 days. A longer one would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** Milliseconds, or undefined for any other text. */
export function parseDuration(written: string | number): number | undefined {
  const [, amount, unit = "s"] = WRITTEN.exec(String(written)) ?? [];
  const ms = Math.round(Number(amount) * (UNITS[unit] ?? Number.NaN));
  return ms <= MAX_MS ? ms : undefined;
}

/** A configured duration, in milliseconds. */
export const Duration = z.union([z.string(), z.number()]).transform((written, context) => {
  const ms = parseDuration(written);
  if (ms !== undefined) return ms;
  context.addIssue({
    code: "custom",
    message: "must be a duration of at most 24 days, such as 10s, 15m or 1h, or a number of seconds",
  });
  return z.NEVER;
});

/** Powers of 1024. */
const SIZE_UNITS: Readonly<Record<string, number>> = {
  b: 1,
  k: 1024,
  m: 1024 ** 2,
  g: 1024 ** 3,
  t: 1024 ** 4,
};
const WRITTEN_SIZE = /^(\d+(?:\.\d+)?)\s*(b|k|m|g|t)?(?:i?b)?$/i;

/** Whole bytes for "512m", "1g" or a number; undefined for any other text. */
export function parseSize(written: string | number): number | undefined {
  const [, amount, unit = "b"] = WRITTEN_SIZE.exec(String(written)) ?? [];
  const bytes = Math.round(Number(amount) * (SIZE_UNITS[unit.toLowerCase()] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** A configured size, in bytes. */
export const Size = z.union([z.string(), z.number()]).transform((written, context) => {
  const bytes = parseSize(written);
  if (bytes !== undefined) return bytes;
  context.addIssue({ code: "custom", message: "must be a size such as 512m or 2g, or a number of bytes" });
  return z.NEVER;
});
