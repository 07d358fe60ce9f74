// The port to owners over an index of them, the same for every store: their names in JSON, in the order of their bytes. A
// tenant's users are neighbours in it.

import type { Owners } from "../../agent/core/owners.ts";
import { ownerOf, ownerText } from "./row-keys.ts";

/** The index that a store implements. */
export interface OwnerIndex extends Pick<Owners, "shelves"> {
  /**
   * Up to `limit` owners of threads, each as the JSON of [tenant, user]: those between `after` and `before`, in the order of
   * their bytes. Fewer only when there are no more.
   */
  between(after: string, before: string, limit: number): Promise<string[]>;
}

/** In the order of their bytes, which is another one than that of JavaScript's strings. */
export const isBefore = (one: string, other: string): boolean =>
  Buffer.compare(Buffer.from(one), Buffer.from(other)) < 0;

/** Before every owner, and behind every one. */
const FIRST = "[";
const LAST = "[~";

/** Between them are the owners of a tenant: what comes next is the quote before the user's name. */
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
