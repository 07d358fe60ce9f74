// A toy store, written from docs/contributing/recipes/add-a-store.md alone: everything is JSON texts in one map, which one process has for itself.

import type { AllStores } from "../../../../src/engine/stores/all-stores.ts";
import { createDeferredCalls } from "../../../../src/engine/stores/deferred-calls.ts";
import { createItems } from "../../../../src/engine/stores/items.ts";
import { ControlChannel, LocalBus } from "../../../../src/engine/stores/local-bus.ts";
import type { StoreOptions } from "../../../../src/engine/stores/options.ts";
import { createOwners, isBefore } from "../../../../src/engine/stores/owners.ts";
import { ownerText } from "../../../../src/engine/stores/row-keys.ts";
import { createRuns } from "../../../../src/engine/stores/runs.ts";
import { openMemoryQuotas } from "../../../../src/engine/stores/sqlite/quotas.ts";
import { createThreads } from "../../../../src/engine/stores/threads.ts";
import { toyDocuments } from "./documents.ts";
import { Files } from "./files.ts";
import { toyKernel } from "./kernel.ts";

export function createToyStores(options: StoreOptions = {}): AllStores {
  const files = new Files(options);
  const [bus, control] = [new LocalBus(), new ControlChannel()];
  const kernel = toyKernel(files, control);
  const { shelves, ...documents } = toyDocuments(files);
  const counters = openMemoryQuotas(files.limits.now);

  return {
    threads: createThreads(kernel, bus),
    runs: createRuns(kernel),
    events: kernel.events,
    documents,
    deferredCalls: createDeferredCalls(kernel),
    items: createItems(documents),
    owners: createOwners({
      shelves,
      async between(after, before, limit) {
        const names = new Set(files.threads().map(({ head }) => ownerText(head.owner)));
        const found = [...names].filter((name) => isBefore(after, name) && isBefore(name, before));
        return found.sort((a, b) => (isBefore(a, b) ? -1 : 1)).slice(0, limit);
      },
    }),
    quotas: counters.quotas,
    bus,
    isDurable: false,
    inRun: (work) => work(),
    ping: async () => void files.names(""),
    async close() {
      for (const part of [files, counters, bus, control]) part.close();
    },
  };
}
