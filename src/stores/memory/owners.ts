// Who has threads in memory.

import type { OwnerIndex } from "../owners.ts";
import type { MemoryDocuments } from "./documents.ts";
import type { MemoryThreads } from "./memory-threads.ts";

export function memoryOwners(memory: MemoryThreads, { shelves }: MemoryDocuments): OwnerIndex {
  return {
    async between(after, before, limit) {
      const texts = memory.owners().map(({ tenant, user }) => JSON.stringify([tenant, user]));
      return texts
        .filter((text) => text > after && text < before)
        .sort((a, b) => (a < b ? -1 : 1))
        .slice(0, limit);
    },
    shelves: async (owner) => shelves(owner),
  };
}
