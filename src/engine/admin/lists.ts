// Lists users, active and waiting runs, and usage. Admins see their own tenant, and operators see all tenants.

import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { Page } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import type { ReportedLimit } from "../quotas/limit-states.ts";
import { sumOf, type UsageTotals, type UserUsage } from "../quotas/store.ts";
import { listInterrupts, listRuns } from "../runs/find.ts";
import { nameAt, type Owned, overUsers, type PageOf, pageOfNames, type Reach } from "./reach.ts";
import type { AdminServices, SandboxEntry } from "./services.ts";

/** Lists tenants that have threads. */
export async function listTenants(
  { owners }: Pick<AdminServices, "owners">,
  { tenant }: Reach,
  page: PageOf,
): Promise<Page<{ tenant: string }>> {
  if (tenant !== undefined) {
    const [first] = await owners.list({ limit: 1, tenant });
    return { items: first ? [{ tenant }] : [] };
  }
  const found = await owners.tenants({ limit: page.limit + 1, after: nameAt(page.cursor) });
  return pageOfNames(
    page,
    found.map((each) => ({ tenant: each })),
    (each) => each.tenant,
  );
}

/** Lists users that have threads. */
export function listUsers(services: AdminServices, reach: Reach, page: PageOf) {
  const { threads } = services.runs.stores;
  return overUsers(services.owners, reach, page, async (owner) => {
    const [newest] = (await threads.list(owner, { limit: 1, children: true })).items;
    return { items: newest ? [{ updated_at: newest.updated_at }] : [] };
  });
}

export function listAllRuns(
  services: AdminServices,
  reach: Reach,
  { status, ...page }: PageOf & { readonly status?: RunRecord["status"] | undefined },
): Promise<Page<Owned<RunRecord>>> {
  return overUsers(services.owners, reach, page, (owner, own) =>
    listRuns(services.runs.stores, owner, {
      limit: own.limit,
      ...omitUndefined({ cursor: own.cursor, status }),
    }),
  );
}

export function listAllInterrupts(
  services: AdminServices,
  reach: Reach,
  page: PageOf,
): Promise<Page<Owned<Interrupt & { thread_id: string }>>> {
  return overUsers(services.owners, reach, page, (owner, own) =>
    listInterrupts(services.runs.stores.threads, owner, {
      limit: own.limit,
      ...omitUndefined({ cursor: own.cursor }),
    }),
  );
}

/** Lists the sandboxes, sorted by id. */
export async function listSandboxes(
  { sandboxes }: Pick<AdminServices, "sandboxes">,
  { tenant, user }: Reach,
  page: PageOf,
): Promise<Page<SandboxEntry>> {
  const after = nameAt(page.cursor);
  const found = (await sandboxes())
    .filter(({ owner }) => tenant === undefined || owner.tenant === tenant)
    .filter(({ owner }) => user === undefined || owner.user === user)
    .filter(({ id }) => after === undefined || id > after)
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  return pageOfNames(page, found, ({ id }) => id);
}

export interface TenantUsageEntry {
  readonly tenant: string;
  readonly user?: string;
  readonly totals: UsageTotals;
  readonly limits: ReportedLimit[];
  readonly currency: string | undefined;
  /** Present only for a tenant. */
  readonly users?: UserUsage[];
}

/** Returns the usage of each tenant with threads, or of the tenant or user that `reach` names. */
export async function listUsage(
  services: AdminServices,
  reach: Reach,
  { days, ...page }: PageOf & { readonly days: number },
): Promise<Page<TenantUsageEntry>> {
  const { quotas } = services;
  const { currency } = quotas;
  const { tenant, user } = reach;
  if (tenant !== undefined && user !== undefined) {
    const { usage, limits } = await quotas.report({ tenant, user }, days);
    return { items: [{ tenant, user, totals: sumOf(usage), limits, currency }] };
  }
  const tenants = tenant === undefined ? await listTenants(services, reach, page) : { items: [{ tenant }] };
  const items = tenants.items.map(async (each) => {
    const { rows, users, limits } = await quotas.reportTenant({ ...each, user: "" }, days);
    return { ...each, totals: sumOf(rows), limits, currency, users };
  });
  return { ...tenants, items: await Promise.all(items) };
}

export const isActive = ({ status }: RunRecord) => !isSettled(status);
