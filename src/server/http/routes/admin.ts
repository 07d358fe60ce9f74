// Lists that cover all users of a tenant for its admins, and all tenants for operators.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { RunRecord } from "../../../agent/core/records.ts";
import type { Page } from "../../../agent/core/stores.ts";
import {
  listAllInterrupts,
  listAllRuns,
  listSandboxes,
  listTenants,
  listUsage,
  listUsers,
} from "../../../engine/admin/lists.ts";
import type { Reach } from "../../../engine/admin/reach.ts";
import { USAGE_DAYS } from "../../../engine/quotas/store.ts";
import { principalOf } from "../../auth/guard.ts";
import { OwnerName, type Principal } from "../../auth/principal.ts";
import { PageQuery, pageOf } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { OpenInterrupt } from "./interrupts.ts";
import { Currency, LimitStates, Used, UserUsed } from "./usage.ts";

export const AdminQuery = PageQuery.extend({
  cursor: z.string().max(4096).optional(),
  tenant: OwnerName.optional().describe("Default: your tenant; for an operator, all tenants."),
  user: OwnerName.optional().describe("An operator must also name the tenant."),
});

const Owned = { tenant: z.string(), user: z.string() };

const User = z
  .object({
    ...Owned,
    updated_at: z.iso.datetime().describe("Time of the last change to one of the user's threads."),
  })
  .meta({ id: "User" });

const Sandbox = z
  .object({
    id: z.string(),
    ...Owned,
    name: z.string().describe("Name of the backend."),
    engine: z
      .string()
      .describe("Docker engine that stores the sandbox's files. `default` if the settings name no engine."),
    state: z
      .enum(["running", "ending", "stopped", "removed"])
      .describe("`removed`: the container has been removed, but its files still exist."),
    used_at: z.iso.datetime(),
  })
  .meta({ id: "Sandbox" });

const TenantUsage = z
  .object({
    tenant: z.string(),
    user: z.string().optional(),
    totals: Used,
    limits: LimitStates,
    currency: Currency,
    users: z.array(UserUsed).optional().describe("The tenant's users, as in `GET /usage`."),
  })
  .meta({ id: "TenantUsage" });

export const WHO = "The scope `admin` covers your tenant, `operator` covers all tenants.";
const PAGES = `${WHO} A page may be empty and have a \`next_cursor\`.`;

export function adminRoutes(app: App, { admin }: RouteServices): void {
  const tags = ["admin"];

  app.get(
    "/admin/tenants",
    {
      schema: {
        summary: "List the tenants with threads",
        description: WHO,
        tags,
        querystring: AdminQuery.omit({ tenant: true, user: true }),
        response: { 200: pageOf(z.object({ tenant: z.string() })) },
      },
    },
    async (request) => over(request, {}, (reach) => listTenants(admin, reach, request.query)),
  );

  app.get(
    "/admin/users",
    {
      schema: {
        summary: "List the users with threads",
        description: PAGES,
        tags,
        querystring: AdminQuery,
        response: { 200: pageOf(User) },
      },
    },
    async (request) => over(request, request.query, (reach) => listUsers(admin, reach, request.query)),
  );

  app.get(
    "/admin/runs",
    {
      schema: {
        summary: "List the runs of all users",
        description: `Grouped by user, newest first. ${PAGES}`,
        tags,
        querystring: AdminQuery.extend({ status: RunRecord.shape.status.optional() }),
        response: { 200: pageOf(RunRecord.extend(Owned).meta({ id: "UserRun" })) },
      },
    },
    async (request) => over(request, request.query, (reach) => listAllRuns(admin, reach, request.query)),
  );

  app.get(
    "/admin/interrupts",
    {
      schema: {
        summary: "List the open interrupts of all users",
        description: `Grouped by user. ${PAGES}`,
        tags,
        querystring: AdminQuery,
        response: { 200: pageOf(OpenInterrupt.extend(Owned).meta({ id: "UserInterrupt" })) },
      },
    },
    async (request) =>
      over(request, request.query, (reach) => listAllInterrupts(admin, reach, request.query)),
  );

  app.get(
    "/admin/sandboxes",
    {
      schema: {
        summary: "List the Docker sandboxes of all users",
        description: WHO,
        tags,
        querystring: AdminQuery,
        response: { 200: pageOf(Sandbox) },
      },
    },
    async (request) => {
      const page = await over(request, request.query, (reach) => listSandboxes(admin, reach, request.query));
      const items = page.items.map(({ id, owner, name, engine, state, used_at }) => ({
        id,
        ...owner,
        name,
        engine,
        state,
        used_at: new Date(used_at).toISOString(),
      }));
      return { ...page, items };
    },
  );

  app.get(
    "/admin/usage",
    {
      schema: {
        summary: "Get the usage and quotas of tenants, or of one user",
        description: `Returns the usage of every tenant with threads, of one \`tenant\`, or of one \`user\` of a tenant. ${WHO}`,
        tags,
        querystring: AdminQuery.extend({
          days: z.coerce.number().int().min(1).max(USAGE_DAYS).default(30),
        }),
        response: { 200: pageOf(TenantUsage) },
      },
    },
    async (request) => over(request, request.query, (reach) => listUsage(admin, reach, request.query)),
  );
}

/** Returns an empty result if an admin asks for another tenant, because an admin must not learn whether it exists. */
async function over<T>(
  request: FastifyRequest,
  asked: Reach,
  list: (reach: Reach) => Promise<Page<T>>,
): Promise<Page<T>> {
  const reach = reachOf(principalOf(request), asked);
  return reach ? list(reach) : { items: [] };
}

/**
 * Returns the tenant and user that the principal may read. Returns undefined if an admin names a tenant other than
 * their own. Throws `invalid_request`.
 */
export function reachOf({ scopes, tenant: own }: Principal, { tenant, user }: Reach): Reach | undefined {
  if (scopes.includes("operator")) {
    if (user !== undefined && tenant === undefined)
      throw new AppError("invalid_request", "Invalid querystring: user: requires `tenant`.");
    return { tenant, user };
  }
  return tenant === undefined || tenant === own ? { tenant: own, user } : undefined;
}

/** Throws `not_found` if an admin names another tenant, as for a tenant that does not exist. */
export function requireReach(principal: Principal, { tenant, user }: { tenant: string; user: string }): void {
  if (!reachOf(principal, { tenant })) throw new AppError("not_found", `There is no user \`${user}\`.`);
}

/** Logs an admin action: who performed it, and on whom. */
export function note(request: FastifyRequest, act: string, to: object): void {
  const { tenant, user, api_key } = principalOf(request);
  request.log.info({ admin: { tenant, user, api_key }, act, to }, "an admin acted");
}
