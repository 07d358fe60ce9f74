// The settings of limits and prices. By default nothing is limited and nothing costs anything. Money is configured in
// units of any one currency and held as integer millionths of it.

import { z } from "zod";
import { ModelPattern } from "../../agent/core/model.ts";

const count = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const MILLION = 1_000_000;
const millionths = (amount: number) => Math.round(amount * MILLION);
const Money = z.number().min(0.000001).max(1_000_000_000).transform(millionths);

/** The limits of one tenant, or one user. */
export const Quota = z.strictObject({
  requests_per_minute: z.int().min(1).max(1_000_000).optional(),
  concurrent_runs: count.optional().describe("Waiting runs count as well."),
  threads: count.optional(),
  streams: count.optional(),
  stored_bytes: count
    .optional()
    .describe("Bytes of the messages of all threads, as JSON, and of the tenant's HTTP tools."),
  tokens_per_day: count.optional(),
  tokens_per_month: count.optional(),
  cost_per_day: Money.optional(),
  cost_per_month: Money.optional(),
});
export type Quota = z.output<typeof Quota>;
export type LimitName = keyof Quota;

const PerMillion = z.number().min(0).max(1_000_000).transform(millionths);

/** Per million tokens. Cache reads and writes cost as input by default. */
export const Price = z.strictObject({
  input: PerMillion,
  output: PerMillion,
  cache_read: PerMillion.optional(),
  cache_write: PerMillion.optional(),
});
export type Price = z.output<typeof Price>;

export const QuotaConfig = z
  .strictObject({
    tenant: Quota.prefault({}),
    user: Quota.prefault({}),
    soft: z
      .number()
      .gt(0)
      .max(1)
      .default(0.8)
      .describe("Used part of a daily or monthly budget from which runs get a `warning`; 1 = never."),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, "must be a code of three capital letters, for example EUR")
      .optional()
      .describe("The currency of limits and prices, an ISO 4217 code. It is shown with amounts."),
    prices: z
      .record(ModelPattern, Price)
      .default({})
      .describe("By `provider:model` or pattern: the model's own name, else the first pattern that fits."),
  })
  .refine((config) => !limitsCost(config) || "*" in config.prices, {
    path: ["prices"],
    error:
      'must have a price for "*", every other model, when cost is limited: a model without a price is free',
  });
export type QuotaConfig = z.output<typeof QuotaConfig>;

function limitsCost({ tenant, user }: { tenant: Quota; user: Quota }): boolean {
  return [tenant, user].some((quota) => quota.cost_per_day ?? quota.cost_per_month);
}
