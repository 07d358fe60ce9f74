// Spans of time as people write them: "250ms", "10s", "15m", "1h", "7d", or a number of seconds.

import { z } from "zod";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WRITTEN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
/** The longest a Node timer can wait, nearly 25 days. A longer one would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** Milliseconds, or nothing when it is no such span. */
export function parseDuration(written: string | number): number | undefined {
  const [, amount, unit = "s"] = WRITTEN.exec(String(written)) ?? [];
  const ms = Math.round(Number(amount) * (UNITS[unit] ?? Number.NaN));
  return ms <= MAX_MS ? ms : undefined;
}

/** In a configuration; its value is in milliseconds. */
export const Duration = z.union([z.string(), z.number()]).transform((written, context) => {
  const ms = parseDuration(written);
  if (ms !== undefined) return ms;
  context.addIssue({
    code: "custom",
    message: "must be a duration of at most 24 days, such as 10s, 15m or 1h, or a number of seconds",
  });
  return z.NEVER;
});
