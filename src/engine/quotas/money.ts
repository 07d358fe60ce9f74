// Amounts of money: counted in millionths of the currency, but configured and shown in its units.

import type { LimitName } from "./config.ts";

const MILLION = 1_000_000;

export const isMoney = (limit: LimitName) => limit.startsWith("cost_");

/** Converts an amount to the unit that the settings use for the limit. */
export const inUnits = (limit: LimitName, amount: number) => (isMoney(limit) ? amount / MILLION : amount);

/** Formats an amount for people: `2.00 EUR`, `5000`. */
export function amountOf(limit: LimitName, amount: number, currency?: string): string {
  if (!isMoney(limit)) return String(amount);
  const [whole, fraction = ""] = (amount / MILLION).toFixed(6).split(".");
  const cents = fraction.replace(/0+$/, "").padEnd(2, "0");
  return `${whole}.${cents}${currency === undefined ? "" : ` ${currency}`}`;
}
