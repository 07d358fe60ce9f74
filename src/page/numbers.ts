// Amounts as people read them, in their language.

import { once } from "./texts.ts";

const plain = once((locale) => new Intl.NumberFormat(locale));
const tenths = once(
  (locale) => new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
);
const smallMoney = once((locale) => new Intl.NumberFormat(locale, { maximumSignificantDigits: 3 }));
const wholeMoney = once(
  (locale) => new Intl.NumberFormat(locale, { maximumFractionDigits: 2, minimumFractionDigits: 2 }),
);
const parts = once((locale) => new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }));
const short = once(
  (locale) => new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }),
);

/** Of millionths. */
export function money(millionths: number): string {
  const value = millionths / 1_000_000;
  return value >= 1 || value === 0 ? wholeMoney().format(value) : smallMoney().format(value);
}

/** Of a part from 0 to 1. */
export const percent = (part: number): string => parts().format(part);

/** `12.3K`, for axes. */
export const compact = (value: number): string => short().format(value);

/** `1.2 s`, `340 ms`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${tenths().format(ms / 1000)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** `1.4`. */
export const oneDecimal = (value: number): string => tenths().format(value);

/** `12,345`. */
export const number = (value: number): string => plain().format(value);
