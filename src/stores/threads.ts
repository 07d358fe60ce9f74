// The thread port over a kernel.

import type { ThreadStore } from "../core/stores.ts";
import { jsonCopy } from "../lib/json.ts";
import type { Kernel } from "./kernel.ts";
import * as rules from "./rules.ts";

export function createThreads<Thread>(kernel: Kernel<Thread>): ThreadStore {
  return {
    ...kernel.threads,

    create(owner, thread) {
      return kernel.change(kernel.ref(owner, thread.id), { isLikelyNew: true }, (view) =>
        rules.createThread(view, jsonCopy(thread)),
      );
    },

    async update(owner, id, change) {
      const isThere = await kernel.change(kernel.ref(owner, id), {}, (view) =>
        rules.updateThread(view, change),
      );
      return isThere ? kernel.threads.get(owner, id) : undefined;
    },

    delete(owner, id) {
      return kernel.change(kernel.ref(owner, id), {}, (view) => rules.emptyThread(view, "delete_thread"));
    },

    clear(owner, id) {
      return kernel.change(kernel.ref(owner, id), {}, (view) => rules.emptyThread(view, "clear_thread"));
    },
  };
}
