// Everything in the memory of this process, gone with it. Bounded by time and by bytes.

import type { AllStores } from "../all-stores.ts";
import { createDeferredCalls } from "../deferred-calls.ts";
import { createItems } from "../items.ts";
import { LocalBus } from "../local-bus.ts";
import { DEFAULTS, type StoreOptions } from "../options.ts";
import { createRuns } from "../runs.ts";
import { openMemoryQuotas } from "../sqlite/quotas.ts";
import { createThreads } from "../threads.ts";
import { Book } from "./book.ts";
import { memoryDocuments } from "./documents.ts";
import { memoryKernel } from "./kernel.ts";

export interface MemoryStoreOptions extends StoreOptions {
  /**
   * What all threads together may weigh, about. When it is reached the thread that was not used for the longest
   * time goes, never one with a run that is active or waits. When nothing can go, whatever would add more is
   * refused with `unavailable`; only the end of a run is always written. What users keep with agents has a bound of
   * its own.
   */
  readonly maxBytes?: number;
  /** What idle threads may weigh as they are. Those that were not used for longer are kept compressed. */
  readonly warmBytes?: number;
}

const MIB = 1024 * 1024;

export function createMemoryStores({
  maxBytes = 256 * MIB,
  warmBytes = 8 * MIB,
  ...options
}: MemoryStoreOptions = {}): AllStores {
  const book = new Book({ ...DEFAULTS, ...options }, { maxBytes, warmBytes });
  const kernel = memoryKernel(book);
  const documents = memoryDocuments(book);
  const { quotas, close: closeQuotas } = openMemoryQuotas(book.limits.now);
  const bus = new LocalBus();
  const sweep = setInterval(() => book.sweep(), book.limits.sweepMs).unref();
  return {
    threads: createThreads(kernel),
    runs: createRuns(kernel),
    events: kernel.events,
    documents,
    deferredCalls: createDeferredCalls(kernel),
    items: createItems(documents),
    quotas,
    bus,
    isDurable: false,
    inRun: (work) => work(),
    async ping() {
      book.assertOpen();
    },
    async close() {
      clearInterval(sweep);
      bus.close();
      closeQuotas();
      book.close();
    },
  };
}
