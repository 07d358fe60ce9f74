// Parses durations and sizes in the notations that people use.

import { z } from "zod";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const WRITTEN = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/;
/** The maximum for Node's timers, nearly 25 days. A longer timer would fire at once. */
const MAX_MS = 2 ** 31 - 1;

/** The maximum duration for which data can be kept, a hundred years. Use `forever` for longer. */
const MAX_KEPT_MS = 36_500 * 86_400_000;

/** Returns milliseconds, or undefined for any other text. */
export function parseDuration(written: string | number, most = MAX_MS): number | undefined {
  const [, amount, unit = "s"] = WRITTEN.exec(String(written)) ?? [];
  const ms = Math.round(Number(amount) * (UNITS[unit] ?? Number.NaN));
  return ms <= most ? ms : undefined;
}

/** A configured duration. Parses to milliseconds. */
export const Duration = z
  .union([z.string(), z.number()])
  .meta({ title: "duration" })
  .transform((written, context) => {
    const ms = parseDuration(written);
    if (ms !== undefined) return ms;
    context.addIssue({
      code: "custom",
      message: "must be a duration of at most 24 days, such as 10s, 15m or 1h, or a number of seconds",
    });
    return z.NEVER;
  });

/**
 * A duration for which data is kept. A value is parsed into milliseconds, and `forever` into infinity. Must not be used
 * for a timer.
 */
export const Lifetime = z
  .union([z.string(), z.number()])
  .meta({ title: "duration or `forever`" })
  .transform((written, context) => {
    const ms = written === "forever" ? Number.POSITIVE_INFINITY : parseDuration(written, MAX_KEPT_MS);
    if (ms !== undefined && ms > 0) return ms;
    context.addIssue({
      code: "custom",
      message: "must be a duration longer than 0 s, such as 15m, 24h or 365d, or `forever`",
    });
    return z.NEVER;
  });

/**
 * A configured duration of at most `most` seconds: a number of seconds, or a text such as 10m. Parses to seconds. The
 * result can be parsed again, which happens with the options of hooks.
 */
export const Seconds = (most: number, accepts: (seconds: number) => boolean = (seconds) => seconds > 0) =>
  z
    .union([z.number(), z.string()])
    .meta({ title: "duration" })
    .transform((written, context) => {
      const seconds = (parseDuration(written) ?? Number.NaN) / 1000;
      if (seconds <= most && accepts(seconds)) return seconds;
      const least = accepts(0) ? "" : " above 0";
      const message = `must be a duration${least} of at most ${most} s, such as 90s or 10m, or a number of seconds`;
      context.addIssue({ code: "custom", message });
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

/** Returns whole bytes for a number or a text such as "512m" or "1g", or undefined for any other text. */
export function parseSize(written: string | number): number | undefined {
  const [, amount, unit = "b"] = WRITTEN_SIZE.exec(String(written)) ?? [];
  const bytes = Math.round(Number(amount) * (SIZE_UNITS[unit.toLowerCase()] ?? Number.NaN));
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** A configured size. Parses to bytes. */
export const Size = z
  .union([z.string(), z.number()])
  .meta({ title: "size" })
  .transform((written, context) => {
    const bytes = parseSize(written);
    if (bytes !== undefined) return bytes;
    context.addIssue({ code: "custom", message: "must be a size such as 512m or 2g, or a number of bytes" });
    return z.NEVER;
  });
