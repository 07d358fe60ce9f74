// The port to owners over an index of them, the same for every store: their names in JSON, in the order of their bytes. A
// tenant's users are neighbours in it.

import type { Owners } from "../core/owners.ts";
import type { Owner } from "../protocol/ids.ts";

/** The index that a store implements. */
export interface OwnerIndex extends Pick<Owners, "shelves"> {
  /**
   * Up to `limit` owners of threads, each as the JSON of [tenant, user]: those between `after` and `before`, in the order of
   * their bytes. Fewer only when there are no more.
   */
  between(after: string, before: string, limit: number): Promise<string[]>;
}

function ownerOf(text: string): Owner {
  const [tenant, user] = JSON.parse(text) as [string, string];
  return { tenant, user };
}

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
      const start = after === undefined ? first : JSON.stringify([after.tenant, after.user]);
      return (await between(start > first ? start : first, last, limit)).map(ownerOf);
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
