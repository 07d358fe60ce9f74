// Builds the message and details of a refusal: how much of the limit is used, in the unit of the settings, and when it
// resets.

import { AppError } from "../../agent/core/errors.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { LimitDetails } from "../../protocol/limit-details.ts";
import type { LimitName, QuotaConfig } from "./config.ts";
import type { LimitState } from "./limit-states.ts";
import { amountOf, inUnits, isMoney } from "./money.ts";
import type { QuotaScope } from "./store.ts";

const WHOSE = { tenant: "Your tenant's", user: "Your" } as const;
const MINUTE_MS = 60_000;

export interface LimitRefusal {
  readonly limit: LimitName;
  readonly of: QuotaScope;
  readonly most: number | undefined;
  readonly used?: number;
  readonly left?: number;
  readonly resets_at?: string;
}

type Currency = Pick<QuotaConfig, "currency">;

/**
 * `state` describes the problem with the limit. `wait` is the number of milliseconds after which a retry may succeed,
 * if known.
 */
export function refusal(
  refused: LimitRefusal,
  state: string,
  wait: number,
  { currency }: Currency,
): AppError {
  const { limit, of, most, resets_at } = refused;
  const shown = most === undefined ? "" : `, ${amountOf(limit, most, currency)},`;
  const message = `${WHOSE[of]} limit \`${limit}\`${shown} ${state}.${again(wait, resets_at)}`;
  const details = {
    ...detailsOf(refused, currency),
    retry_after_ms: Math.max(1, Math.ceil(wait)),
  };
  return new AppError("limit_exceeded", message, { details });
}

/** Returns the warning for a run that has used most of a budget. */
export function nearlyUsed({ limit, of, most, used, resets_at }: LimitState, { currency }: Currency): string {
  const until = resets_at === undefined ? "" : `, until ${moment(resets_at)}`;
  const amounts = `${amountOf(limit, used)} of ${amountOf(limit, most, currency)}`;
  return `${WHOSE[of]} limit \`${limit}\` is nearly used up: ${amounts}${until}.`;
}

/** Amounts of money are in units of the currency, like the configured limits. */
export function detailsOf(
  { limit, of, resets_at, ...amounts }: LimitRefusal,
  currency?: string,
): Omit<LimitDetails, "message"> {
  const told = (amount: number | undefined) => (amount === undefined ? undefined : inUnits(limit, amount));
  const { most, used, left } = amounts;
  return {
    limit,
    of,
    ...omitUndefined({
      ...{ most: told(most), used: told(used), left: told(left), resets_at },
      currency: isMoney(limit) ? currency : undefined,
    }),
  };
}

function again(wait: number, resets_at: string | undefined): string {
  if (wait <= 0) return "";
  if (resets_at !== undefined) return ` It resets at ${moment(resets_at)}, in ${lengthOf(wait)}.`;
  return ` Try again in ${lengthOf(wait)}.`;
}

/** Formats a time, for example `2026-11-28 00:00 UTC`. */
const moment = (at: string) => `${at.slice(0, 10)} ${at.slice(11, 16)} UTC`;

/** Formats a duration in milliseconds for people, rounded up: `40 s`, `5 min`, `22 h 46 min`, `12 days`. */
function lengthOf(ms: number): string {
  if (ms < 2 * MINUTE_MS) return `${Math.ceil(ms / 1000)} s`;
  const minutes = Math.ceil(ms / MINUTE_MS);
  if (minutes < 120) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.ceil(minutes / 1440)} days`;
}
