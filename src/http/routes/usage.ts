// Usage of the user's runs, and the rest of each quota.

import { z } from "zod";
import { Usage } from "../../core/message.ts";
import { Quota } from "../../quotas/config.ts";
import type { Quotas } from "../../quotas/index.ts";
import { SCOPES, USAGE_DAYS, type UsageRow } from "../../quotas/store.ts";
import { ownerOf } from "../auth/guard.ts";
import type { App } from "../validation.ts";

const UsageQuery = z.strictObject({
  days: z.coerce
    .number()
    .int()
    .min(1)
    .max(USAGE_DAYS)
    .default(30)
    .describe("Today and the days before, in UTC."),
});

const Used = Usage.extend({
  calls: z.int().describe("Model calls."),
  cost: z.int().describe("In millionths of the currency of the server's prices."),
});

const UsageReport = z
  .object({
    items: z
      .array(Used.extend({ day: z.iso.date(), agent: z.string(), model: z.string() }))
      .describe("By day, agent and model, newest day first."),
    totals: Used,
    limits: z
      .array(
        z.object({
          limit: Quota.keyof(),
          of: z.enum(SCOPES).describe("Whether it applies to the tenant or to you."),
          most: z.int(),
          used: z.int(),
          left: z.int(),
          resets_at: z.iso.datetime().optional(),
        }),
      )
      .describe("In units of the limit; `cost_per_day` and `cost_per_month` in millionths."),
  })
  .meta({ id: "UsageReport" });

export function usageRoutes(app: App, { quotas }: { readonly quotas: Quotas }): void {
  app.get(
    "/usage",
    {
      schema: {
        summary: "Get your usage, cost and remaining quotas",
        tags: ["operations"],
        querystring: UsageQuery,
        response: { 200: UsageReport },
      },
    },
    async (request) => {
      const { usage, limits } = await quotas.report(ownerOf(request), request.query.days);
      return { items: usage, totals: totalsOf(usage), limits };
    },
  );
}

function totalsOf(rows: readonly UsageRow[]): z.infer<typeof Used> {
  const sum = (key: keyof z.infer<typeof Used>) => rows.reduce((total, row) => total + row[key], 0);
  return {
    calls: sum("calls"),
    cost: sum("cost"),
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cache_read_tokens: sum("cache_read_tokens"),
    cache_write_tokens: sum("cache_write_tokens"),
  };
}
