// The usage of the user's or the tenant's runs, and what remains of each quota.

import { z } from "zod";
import { Usage } from "../../../agent/core/message.ts";
import { Quota } from "../../../engine/quotas/config.ts";
import type { Quotas } from "../../../engine/quotas/index.ts";
import { MAX_USERS, SCOPES, sumOf, USAGE_DAYS } from "../../../engine/quotas/store.ts";
import { ownerOf, principalOf } from "../../auth/guard.ts";
import { requireScope } from "../../auth/scopes.ts";
import type { App } from "../validation.ts";

const UsageQuery = z.strictObject({
  days: z.coerce
    .number()
    .int()
    .min(1)
    .max(USAGE_DAYS)
    .default(30)
    .describe("Number of days to include, ending today (UTC)."),
  of: z
    .enum(SCOPES)
    .default("user")
    .describe(
      "`user`: your usage, with the scope `read`. `tenant`: the usage of all users of your tenant, with `admin`.",
    ),
});

export const Used = Usage.omit({ web_searches: true }).extend({
  calls: z.int().describe("Number of model calls."),
  cost: z.int().describe("Cost in millionths of the currency of the server's prices."),
});

export const UserUsed = Used.extend({ user: z.string().optional() });

export const LimitStates = z
  .array(
    z.object({
      limit: Quota.keyof(),
      of: z.enum(SCOPES).describe("Scope of the limit."),
      most: z.int(),
      used: z.int(),
      left: z.int(),
      resets_at: z.iso.datetime().optional(),
      in_units: z
        .object({ most: z.number(), used: z.number(), left: z.number() })
        .optional()
        .describe(
          "For cost limits: the amounts in units of the currency, as in the settings and in the details of refused requests.",
        ),
    }),
  )
  .describe(
    "Amounts in the unit of the limit. Costs (`cost_per_day`, `cost_per_month`) are in millionths of the currency.",
  );

export const Currency = z
  .string()
  .optional()
  .describe("Currency of costs and cost limits. Absent if none is configured.");

const UsageReport = z
  .object({
    items: z
      .array(Used.extend({ day: z.iso.date(), agent: z.string(), model: z.string() }))
      .describe("Usage by day, agent and model, most recent day first."),
    totals: Used,
    users: z
      .array(UserUsed)
      .optional()
      .describe(
        `The tenant's ${MAX_USERS} users with the highest cost, in descending order. A last item without \`user\` sums up everyone else, including users beyond the first ${MAX_USERS} of a day.`,
      ),
    limits: LimitStates,
    currency: Currency,
  })
  .meta({ id: "UsageReport" });

export function usageRoutes(app: App, { quotas }: { readonly quotas: Quotas }): void {
  app.get(
    "/usage",
    {
      schema: {
        summary: "Get your usage, or your tenant's, with cost and remaining quotas",
        tags: ["operations"],
        querystring: UsageQuery,
        response: { 200: UsageReport },
      },
    },
    async (request) => {
      const { days, of } = request.query;
      requireScope(principalOf(request), of === "tenant" ? "admin" : "read");
      const owner = ownerOf(request);
      const { currency } = quotas;
      if (of === "user") {
        const { usage, limits } = await quotas.report(owner, days);
        return { items: usage, totals: sumOf(usage), limits, currency };
      }
      const { rows, users, limits } = await quotas.reportTenant(owner, days);
      return { items: rows, totals: sumOf(rows), users, limits, currency };
    },
  );
}
