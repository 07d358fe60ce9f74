// The settings for limits and prices. By default there are none. Settings use units of one currency of your choice;
// amounts are stored as integer millionths of a unit.

import { z } from "zod";
import { ModelPattern } from "../../agent/core/model.ts";

const count = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const MILLION = 1_000_000;
const millionths = (amount: number) => Math.round(amount * MILLION);
const Money = z.number().min(0.000001).max(1_000_000_000).transform(millionths);

/** The limits on one tenant or one user. */
export const Quota = z.strictObject({
  requests_per_minute: z.int().min(1).max(1_000_000).optional().describe("Maximum requests per minute."),
  concurrent_runs: count
    .optional()
    .describe("Maximum number of accepted runs at the same time, including waiting runs."),
  threads: count.optional().describe("Maximum number of threads."),
  streams: count.optional().describe("Maximum number of open event streams."),
  stored_bytes: count
    .optional()
    .describe(
      "Maximum size in bytes of the messages in all threads, as JSON, and of the tenant's HTTP tools.",
    ),
  tokens_per_day: count.optional().describe("Maximum input and output tokens per UTC day."),
  tokens_per_month: count.optional().describe("Maximum input and output tokens per UTC month."),
  cost_per_day: Money.optional().describe("Maximum cost per UTC day, in units of `currency`."),
  cost_per_month: Money.optional().describe("Maximum cost per UTC month, in units of `currency`."),
});
export type Quota = z.output<typeof Quota>;
export type LimitName = keyof Quota;

const PerMillion = z.number().min(0).max(1_000_000).transform(millionths);

/** Millionths per search. */
const PerThousand = z
  .number()
  .min(0)
  .max(1_000_000)
  .transform((amount) => Math.round((amount * MILLION) / 1000));

/** Prices per million tokens. By default, cache reads and writes cost as much as input. */
export const Price = z.strictObject({
  input: PerMillion.describe("Price per million input tokens."),
  output: PerMillion.describe("Price per million output tokens."),
  cache_read: PerMillion.optional().describe(
    "Price per million input tokens read from the cache. Default: `input`.",
  ),
  cache_write: PerMillion.optional().describe(
    "Price per million input tokens written to the cache. Default: `input`.",
  ),
  web_search: PerThousand.optional().describe(
    "Price per thousand web searches that the provider makes. Default: 0.",
  ),
});
export type Price = z.output<typeof Price>;

export const QuotaConfig = z
  .strictObject({
    tenant: Quota.prefault({}).describe("Limits for each tenant."),
    user: Quota.prefault({}).describe("Limits for each user."),
    soft: z
      .number()
      .gt(0)
      .max(1)
      .default(0.8)
      .describe("Fraction of a budget (0–1) after which runs emit a `warning`. 1 means never."),
    currency: z
      .string()
      .regex(/^[A-Z]{3}$/, "must be a code of three capital letters, for example EUR")
      .optional()
      .describe("Currency of limits and prices (ISO 4217). Responses show it next to amounts."),
    prices: z
      .record(ModelPattern, Price)
      .default({})
      .describe(
        "Prices by `provider:model` or pattern. An exact name takes precedence; otherwise the first matching pattern applies.",
      ),
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
