// Lists the owners of threads in memory.

import type { OwnerIndex } from "../owners.ts";
import type { MemoryDocuments } from "./documents.ts";
import type { MemoryThreads } from "./memory-threads.ts";

export function memoryOwners(memory: MemoryThreads, { shelves }: MemoryDocuments): OwnerIndex {
  return {
    between: async (after, before, limit) => memory.ownersBetween(after, before, limit),
    shelves: async (owner) => shelves(owner),
  };
}
