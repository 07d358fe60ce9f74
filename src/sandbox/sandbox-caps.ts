// Limits the number of running sandboxes, and the disk space of a tenant.

import type { CountedSandbox, Entry, Sandbox } from "./sandbox-records.ts";

export interface SandboxCaps {
  /** The maximum number of running or ending sandboxes, across all tenants. */
  readonly total: number;
  /** The maximum number of running or ending sandboxes per tenant. */
  readonly tenant: number;
  /** The maximum number of running or ending sandboxes on the sandbox's engine. Unlimited if omitted. */
  readonly engine?: number;
  /**
   * The maximum number of bytes for the files of all sandboxes of one tenant, running or not. Unlimited if omitted.
   */
  readonly tenantDisk?: number;
}

export type ReachedCap = "tenant" | "total" | "engine" | "disk";

/** Returns the first cap that one more running sandbox would exceed. */
export function reachedCap(
  { engine, owner }: Sandbox,
  others: readonly CountedSandbox[],
  caps: SandboxCaps,
): Exclude<ReachedCap, "disk"> | undefined {
  const own = others.filter(({ tenant }) => tenant === owner.tenant);
  const neighbours = others.filter((other) => other.engine === engine);
  if (own.length >= caps.tenant) return "tenant";
  if (others.length >= caps.total) return "total";
  if (neighbours.length >= (caps.engine ?? Number.POSITIVE_INFINITY)) return "engine";
  return undefined;
}

/** True if the sandbox uses more disk space than before. `tenantDisk` limits the sum. */
export function growsDisk(
  { disk = 0 }: Sandbox,
  found: Entry | undefined,
  { tenantDisk }: SandboxCaps,
): boolean {
  // The disk size of an old sandbox is unknown, because earlier versions did not record it. Their users keep access to
  // the files.
  const isKnown = !found || found.disk !== undefined;
  return tenantDisk !== undefined && isKnown && disk > diskOf(found);
}

/** True if the tenant's sandboxes, running or not, would exceed the tenant's disk limit. */
export function exceedsDisk(
  { owner, disk = 0 }: Sandbox,
  others: readonly Entry[],
  caps: SandboxCaps,
): boolean {
  const { tenantDisk = Number.POSITIVE_INFINITY } = caps;
  const own = others.filter((each) => each.owner.tenant === owner.tenant);
  return own.reduce((sum, each) => sum + diskOf(each), disk) > tenantDisk;
}

export const diskOf = (entry: Entry | null | undefined) => entry?.disk ?? 0;
