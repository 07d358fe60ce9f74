// The port for owners, based on an index that every store provides. The index contains names as JSON in byte order, so
// a tenant's users are next to each other.

import type { Owners } from "../../agent/core/owners.ts";
import { ownerOf, ownerText } from "./row-keys.ts";

/** The index that a store implements. */
export interface OwnerIndex extends Pick<Owners, "shelves"> {
  /**
   * Returns up to `limit` owners of threads, each as the JSON of [tenant, user], between `after` and `before`, in byte
   * order. Returns fewer only if there are no more owners.
   */
  between(after: string, before: string, limit: number): Promise<string[]>;
}

/** Compares strings by bytes, which differs from the order of JavaScript strings. */
export const isBefore = (one: string, other: string): boolean =>
  Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;

/** The positions before all owners and after all owners. */
const FIRST = "[";
const LAST = "[~";

/** Returns the range that contains a tenant's owners. The next character is the quote before the user's name. */
function rangeOf(tenant: string): readonly [after: string, before: string] {
  const start = `[${JSON.stringify(tenant)},`;
  return [start, `${start}#`];
}

export function createOwners({ between, shelves }: OwnerIndex): Owners {
  return {
    async list({ limit, after, tenant }) {
      const [first, last] = tenant === undefined ? [FIRST, LAST] : rangeOf(tenant);
      const start = after === undefined ? first : ownerText(after);
      return (await between(isBefore(first, start) ? start : first, last, limit)).map(ownerOf);
    },

    async tenants({ limit, after }) {
      const found: string[] = [];
      for (let start = after === undefined ? FIRST : rangeOf(after)[1]; found.length < limit; ) {
        const [next] = await between(start, LAST, 1);
        if (next === undefined) break;
        const { tenant } = ownerOf(next);
        found.push(tenant);
        start = rangeOf(tenant)[1];
      }
      return found;
    },

    shelves,
  };
}
