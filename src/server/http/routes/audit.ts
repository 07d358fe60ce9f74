// The audit trail of a tenant, for its admins and for operators.

import { z } from "zod";
import { AuditEntry } from "../../../engine/audit/entry.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { principalOf } from "../../auth/guard.ts";
import { OwnerName } from "../../auth/principal.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { reachOf, WHO } from "./admin.ts";

const Query = PageQuery.extend({
  tenant: OwnerName.optional().describe("Default: your tenant."),
  user: OwnerName.optional().describe(
    "Only entries about what this user did, or what others did to the user's data.",
  ),
  action: z
    .string()
    .regex(
      /^[a-z0-9_]{1,32}(\.[a-z0-9_]{1,32})?$/,
      "must be an action such as `thread.delete`, or its first word",
    )
    .optional()
    .describe("An action, such as `thread.delete`, or a group of actions, such as `thread`."),
  since: z.iso.datetime({ offset: true }).optional().describe("Earliest time."),
  until: z.iso.datetime({ offset: true }).optional().describe("Latest time."),
});

export function auditRoutes(app: App, { audit }: RouteServices): void {
  app.get(
    "/admin/audit",
    {
      schema: {
        summary: "Read the audit trail of a tenant",
        description: `Shows who changed, approved, exported or deleted something, and who read other users' data. Newest first. ${WHO} A page can be empty and still have a \`next_cursor\`.`,
        tags: ["admin"],
        querystring: Query,
        response: { 200: pageOf(AuditEntry) },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { tenant = principal.tenant, since, until, ...query } = request.query;
      // An admin must not learn whether another tenant exists.
      if (!reachOf(principal, { tenant })) return { items: [] };
      return audit.list(tenant, omitUndefined({ ...query, since: timeOf(since), until: timeOf(until) }));
    },
  );
}

const timeOf = (written: string | undefined) => (written === undefined ? undefined : Date.parse(written));
