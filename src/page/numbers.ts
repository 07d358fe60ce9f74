// Amounts as people read them, in their language.

import { locale, once, t } from "./texts.ts";

const plain = once((locale) => new Intl.NumberFormat(locale));
const tenths = once(
  (locale) => new Intl.NumberFormat(locale, { minimumFractionDigits: 1, maximumFractionDigits: 1 }),
);
let small: Intl.NumberFormat | undefined;
let whole: Intl.NumberFormat | undefined;
/** The currency of costs, an ISO 4217 code; undefined: amounts are shown without one. */
let currency: string | undefined;

/** To be called when the server has said what its costs are in. */
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

/** Of millionths, with the currency where the server names one. */
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

/** Of model calls. Those without a price cost nothing, which is not the same as free. */
export const costOf = ({ cost, calls }: { readonly cost: number; readonly calls: number }): string =>
  cost === 0 && calls > 0 ? t().usage.noPrice : money(cost);

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

/** Of a day such as `2026-11-27`: `27 Nov 2026`, the same day in each time zone. */
export const day = (iso: string): string => days().format(new Date(`${iso}T00:00:00Z`));

/** `12,345`. */
export const number = (value: number): string => plain().format(value);

const choices = once((locale) => new Intl.ListFormat(locale, { type: "disjunction" }));

/** One of several names: "cd, ls or npm test". */
export const eitherOf = (names: readonly string[]): string => choices().format(names);
