// What tenants and users may use, and what models cost: the settings. Without a word nothing is limited and nothing
// costs anything. Money is written in units of any one currency and held in millionths of it, as integers.

import { z } from "zod";
import { globMatcher } from "../lib/glob.ts";

const count = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const MILLION = 1_000_000;
const millionths = (amount: number) => Math.round(amount * MILLION);
const Money = z.number().min(0.000001).max(1_000_000_000).transform(millionths);

/** What one tenant, or one user, may use. */
export const Quota = z.strictObject({
  requests_per_minute: z.int().min(1).max(1_000_000).optional(),
  concurrent_runs: count.optional().describe("Those that wait count as well."),
  threads: count.optional(),
  streams: count.optional(),
  tokens_per_day: count.optional(),
  tokens_per_month: count.optional(),
  cost_per_day: Money.optional(),
  cost_per_month: Money.optional(),
});
export type Quota = z.output<typeof Quota>;
export type LimitName = keyof Quota;

const PerMillion = z.number().min(0).max(1_000_000).transform(millionths);

/** Of a million tokens. What is read from a cache, or written to it, costs as input unless it is said. */
export const Price = z.strictObject({
  input: PerMillion,
  output: PerMillion,
  cache_read: PerMillion.optional(),
  cache_write: PerMillion.optional(),
});
export type Price = z.output<typeof Price>;

const ModelPattern = z
  .string()
  .min(1)
  .superRefine((pattern, context) => {
    try {
      modelMatcher(pattern);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      context.addIssue({ code: "custom", message: `is no pattern of model names: it ${error.message}` });
    }
  });

export const QuotaConfig = z
  .strictObject({
    tenant: Quota.prefault({}),
    user: Quota.prefault({}),
    soft: z
      .number()
      .gt(0)
      .max(1)
      .default(0.8)
      .describe("Part of a day's or a month's budget after which runs get a `warning`; 1 = never."),
    prices: z
      .record(ModelPattern, Price)
      .default({})
      .describe("By model, `provider:model`, or pattern: the name itself, else the first that fits."),
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

/** No character of a model's name divides it: `*` stands for all of them. Throws a `SyntaxError`. */
export function modelMatcher(pattern: string): (model: string) => boolean {
  const whole = (text: string) => text.replaceAll("/", "\u2215");
  const matches = globMatcher(whole(pattern));
  return (model) => matches(whole(model));
}
