// Documents of tenants whose bodies count among the tenant's stored bytes.

import type { Collection, Documents, ListedCollection } from "../core/documents.ts";
import type { Quotas } from "./index.ts";

/**
 * The same documents. Before a tenant's documents of one of these kinds are written, their new size is counted; a write that makes them
 * grow beyond the limit throws `limit_exceeded` and changes nothing. Writers at the same time may count each other's documents late: the
 * next write measures what is there.
 */
export function countedDocuments(
  documents: Documents,
  quotas: Pick<Quotas, "counts" | "setTenantStored">,
  kinds: ReadonlySet<string>,
): Documents {
  return {
    ...documents,

    async write(collection, writes, options) {
      if (!isCounted(collection) || !quotas.counts("stored_bytes"))
        return documents.write(collection, writes, options);
      const { kind, tenant } = collection;
      const id = `documents:${kind}`;
      const { bytes } = await documents.size(collection);
      const keys = writes.map(({ key }) => key);
      const { found } = await documents.read(collection, keys);
      const before = found.reduce((sum, each) => sum + Buffer.byteLength(each?.body ?? ""), 0);
      const after = writes.reduce((sum, { body = "" }) => sum + Buffer.byteLength(body), 0);
      await quotas.setTenantStored(tenant, { id, bytes: bytes - before + after });
      let isWritten = false;
      try {
        const outcome = await documents.write(collection, writes, options);
        isWritten = outcome === "written";
        return outcome;
      } finally {
        if (!isWritten) await quotas.setTenantStored(tenant, { id, bytes, are_stored: true });
      }
    },
  };

  function isCounted(collection: Collection): collection is ListedCollection & { readonly tenant: string } {
    return !("of" in collection) && collection.tenant !== undefined && kinds.has(collection.kind);
  }
}
