// Formats amounts in the user's language.

import { locale, once, t } from "./texts.ts";

const plain = once((locale) => new Intl.NumberFormat(locale));
const tenths = once(
  (locale) => new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
);
let small: Intl.NumberFormat | undefined;
let whole: Intl.NumberFormat | undefined;
/** The currency of costs, as an ISO 4217 code. If undefined, amounts appear without a currency. */
let currency: string | undefined;

/** Call this when the server has named its currency. */
export function countIn(code: string | undefined): void {
  if (code === currency) return;
  currency = code;
  small = undefined;
  whole = undefined;
}
const parts = once((locale) => new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }));
const short = once(
  (locale) =>
    new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1, useGrouping: "always" }),
);

const days = once((locale) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }));

/** Formats millionths, with the currency if the server names one. */
export function money(millionths: number): string {
  const value = millionths / 1_000_000;
  const isWhole = value >= 1 || value === 0;
  const style = currency === undefined ? {} : ({ style: "currency", currency } as const);
  if (isWhole) {
    const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
    whole ??= new Intl.NumberFormat(locale(), { ...style, ...digits });
    return whole.format(value);
  }
  small ??= new Intl.NumberFormat(locale(), { ...style, maximumSignificantDigits: 3 });
  return small.format(value);
}

/**
 * Formats the cost of model calls. If the models have no price, returns "no price set" instead of 0, because the calls
 * are not free.
 */
export const costOf = ({ cost, calls }: { readonly cost: number; readonly calls: number }): string =>
  cost === 0 && calls > 0 ? t().usage.noPrice : money(cost);

/** Formats a fraction (0–1). */
export const percent = (part: number): string => parts().format(part);

/** Formats numbers as `12.3K`, for axes. */
export const compact = (value: number): string => short().format(value);

/** `1.2 s`, `340 ms`, `3 min 5 s`. */
export function duration(ms: number): string {
  // Each unit ends where its text would be that of a whole larger unit.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${tenths().format(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `1.4`. */
export const oneDecimal = (value: number): string => tenths().format(value);

/** Formats a day, such as `2026-11-27` as `27 Nov 2026`. The result is the same in every time zone. */
export const day = (iso: string): string => days().format(new Date(`${iso}T00:00:00Z`));

/** `12,345`. */
export const number = (value: number): string => plain().format(value);

const choices = once((locale) => new Intl.ListFormat(locale, { type: "disjunction" }));

/** Formats a choice of names: "cd, ls or npm test". */
export const eitherOf = (names: readonly string[]): string => choices().format(names);
