// How many sandboxes may run at once, and how much disk a tenant's may have.

import type { CountedSandbox, Entry, Sandbox } from "./sandbox-records.ts";

export interface SandboxCaps {
  /** Running or ending at once, of all tenants. */
  readonly total: number;
  /** The same of one tenant. */
  readonly tenant: number;
  /** The same on the sandbox's engine; without it no limit of its own. */
  readonly engine?: number;
  /** Bytes that the files of all sandboxes of one tenant may have, also of those that do not run; without it no limit. */
  readonly tenantDisk?: number;
}

export type ReachedCap = "tenant" | "total" | "engine" | "disk";

/** The first cap that one more running sandbox would exceed, beside those that run or are ending. */
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

/** Whether the sandbox takes more disk than it had before, of which `tenantDisk` limits the sum. */
export function growsDisk(
  { disk = 0 }: Sandbox,
  found: Entry | undefined,
  { tenantDisk }: SandboxCaps,
): boolean {
  // The disk of one from before disks were recorded is unknown, and its files stay within reach.
  const isKnown = !found || found.disk !== undefined;
  return tenantDisk !== undefined && isKnown && disk > diskOf(found);
}

/** Whether the tenant's sandboxes would have more disk than they may, whether they run or not. */
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
