// Counts the documents of tenants and users towards their stored bytes.

import {
  type Collection,
  type Documents,
  isOwned,
  type OwnedCollection,
} from "../../agent/core/documents.ts";
import type { Quotas } from "./index.ts";

/**
 * Wraps `documents`. Before a write to one of these kinds, the wrapper counts the new size for the tenant
 * and, in a user's collection, also for the user. If a write grows the collection beyond a limit, throws
 * `limit_exceeded` and changes nothing. Concurrent writers may count each other's documents late; the next
 * write measures all of them.
 */
export function countedDocuments(
  documents: Documents,
  quotas: Pick<Quotas, "counts" | "setDocumentsStored">,
  kinds: ReadonlySet<string>,
): Documents {
  return {
    ...documents,

    async write(collection, writes, options) {
      if (!isCounted(collection)) return documents.write(collection, writes, options);
      const { bytes } = await documents.size(collection);
      const keys = writes.map(({ key }) => key);
      const { found } = await documents.read(collection, keys);
      const before = found.reduce((sum, each) => sum + Buffer.byteLength(each?.body ?? ""), 0);
      const after = writes.reduce((sum, { body = "" }) => sum + Buffer.byteLength(body), 0);
      await quotas.setDocumentsStored(collection, bytes - before + after);
      let isWritten = false;
      try {
        const outcome = await documents.write(collection, writes, options);
        isWritten = outcome === "written";
        return outcome;
      } finally {
        if (!isWritten) await quotas.setDocumentsStored(collection, bytes, { areStored: true });
      }
    },

    async trim(collection, retention) {
      const deleted = await documents.trim(collection, retention);
      if (deleted > 0 && isCounted(collection)) {
        const { bytes } = await documents.size(collection);
        await quotas.setDocumentsStored(collection, bytes, { areStored: true });
      }
      return deleted;
    },
  };

  function isCounted(collection: Collection): collection is OwnedCollection {
    return isOwned(collection) && kinds.has(collection.kind) && quotas.counts("stored_bytes");
  }
}
