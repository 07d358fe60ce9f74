// Keeps all data in this process's memory and loses it when the process ends. Limited by time and by bytes.

import type { AllStores } from "../all-stores.ts";
import { createDeferredCalls } from "../deferred-calls.ts";
import { createItems } from "../items.ts";
import { LocalBus } from "../local-bus.ts";
import { DEFAULTS, type StoreOptions } from "../options.ts";
import { createOwners } from "../owners.ts";
import { createRuns } from "../runs.ts";
import { openMemoryQuotas } from "../sqlite/quotas.ts";
import { createThreads } from "../threads.ts";
import { memoryDocuments } from "./documents.ts";
import { memoryKernel } from "./kernel.ts";
import { MemoryThreads } from "./memory-threads.ts";
import { memoryOwners } from "./owners.ts";

export interface MemoryStoreOptions extends StoreOptions {
  /**
   * The approximate maximum size in bytes of all threads together. At the limit, the least recently used thread without
   * an active or waiting run is dropped. If no thread can be dropped, every addition is refused with `unavailable`,
   * except the end of a run, which is always written. Documents of users and their agents have a separate limit.
   */
  readonly maxBytes?: number;
  /** The maximum size in bytes of uncompressed idle threads. The least recently used threads are compressed. */
  readonly uncompressedBytes?: number;
}

const MIB = 1024 * 1024;

export function createMemoryStores({
  maxBytes = 256 * MIB,
  uncompressedBytes = 8 * MIB,
  ...options
}: MemoryStoreOptions = {}): AllStores {
  const memory = new MemoryThreads({ ...DEFAULTS, ...options }, { maxBytes, uncompressedBytes });
  const kernel = memoryKernel(memory);
  const documents = memoryDocuments(memory);
  const { quotas, close: closeQuotas } = openMemoryQuotas(memory.limits.now);
  const bus = new LocalBus();
  const sweep = setInterval(() => memory.sweep(), memory.limits.sweepMs).unref();
  return {
    threads: createThreads(kernel, bus),
    runs: createRuns(kernel),
    events: kernel.events,
    documents,
    deferredCalls: createDeferredCalls(kernel),
    items: createItems(documents),
    owners: createOwners(memoryOwners(memory, documents)),
    quotas,
    bus,
    isDurable: false,
    inRun: (work) => work(),
    async ping() {
      memory.assertOpen();
    },
    async close() {
      clearInterval(sweep);
      bus.close();
      closeQuotas();
      memory.close();
    },
  };
}
