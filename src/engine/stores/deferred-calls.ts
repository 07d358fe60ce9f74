// The port for deferred calls on top of a kernel.

import type {
  CallChange,
  CallKey,
  DeferredCall,
  DeferredCallStore,
} from "../../agent/core/deferred-calls.ts";
import type { Kernel } from "./kernel.ts";
import * as rules from "./rules.ts";

export function createDeferredCalls<Thread>(kernel: Kernel<Thread>): DeferredCallStore {
  const threadOf = ({ owner, thread_id }: CallKey) => kernel.ref(owner, thread_id);

  return {
    ...kernel.deferredCalls,

    open(call) {
      return kernel.change(threadOf(call), { calls: true }, (view) => rules.openCall(view, call));
    },

    accept: (key) => change(key, "accept"),
    leave: (key) => change(key, "leave"),
    close: (key) => change(key, "close"),

    isKept: async (tokenHash) => (await kernel.findCall(tokenHash)) !== undefined,

    async deliver(tokenHash, reply) {
      const found = await kernel.findCall(tokenHash);
      if (!found) return undefined;
      return kernel.change(found.thread, { call: found.call_id }, (view) =>
        rules.deliverCall(view, tokenHash, reply),
      );
    },

    forget(key) {
      return kernel.change(threadOf(key), { call: key.call_id }, rules.forgetCall);
    },

    due: (limit) => kernel.dueCalls(limit),
  };

  function change(key: CallKey, by: CallChange): Promise<DeferredCall | undefined> {
    return kernel.change(threadOf(key), { call: key.call_id }, (view) => rules.changeCall(view, by));
  }
}
