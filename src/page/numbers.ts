// Amounts as people read them.

const NUMBER = new Intl.NumberFormat();
const MONEY = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const WHOLE_MONEY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2, minimumFractionDigits: 2 });
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 0 });
const COMPACT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

/** Of millionths. */
export function money(millionths: number): string {
  const value = millionths / 1_000_000;
  return value >= 1 || value === 0 ? WHOLE_MONEY.format(value) : MONEY.format(value);
}

/** Of a part from 0 to 1. */
export const percent = (part: number): string => PERCENT.format(part);

/** `12.3K`, for axes. */
export const compact = (value: number): string => COMPACT.format(value);

/** `1.2 s`, `340 ms`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** `12,345`. */
export const number = (value: number): string => NUMBER.format(value);
