// Amounts of money: counted in millionths of the currency, written in settings and told in its units.

import type { LimitName } from "./config.ts";

const MILLION = 1_000_000;

export const isMoney = (limit: LimitName) => limit.startsWith("cost_");

/** An amount of a limit, as the limit is written in the settings. */
export const inUnits = (limit: LimitName, amount: number) => (isMoney(limit) ? amount / MILLION : amount);

/** An amount of a limit as a person reads it: `2.00 EUR`, `5000`. */
export function amountOf(limit: LimitName, amount: number, currency?: string): string {
  if (!isMoney(limit)) return String(amount);
  const [whole, fraction = ""] = (amount / MILLION).toFixed(6).split(".");
  const cents = fraction.replace(/0+$/, "").padEnd(2, "0");
  return `${whole}.${cents}${currency === undefined ? "" : ` ${currency}`}`;
}
