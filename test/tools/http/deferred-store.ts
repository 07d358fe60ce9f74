// The port to deferred calls, in a map.

import type { CallKey, DeferredCall, DeferredCallStore } from "../../../src/core/deferred-calls.ts";

export function deferredStore(): Omit<DeferredCallStore, "due"> & {
  readonly calls: Map<string, DeferredCall>;
} {
  const calls = new Map<string, DeferredCall>();
  const idOf = ({ owner, thread_id, call_id }: CallKey) =>
    JSON.stringify([owner.tenant, owner.user, thread_id, call_id]);
  const change = (id: string, call: DeferredCall) => {
    calls.set(id, call);
    return structuredClone(call);
  };
  return {
    calls,
    async open(call) {
      change(idOf(call), { ...structuredClone(call), state: "sent" });
    },
    async get(key) {
      return structuredClone(calls.get(idOf(key)));
    },
    async accept(key) {
      const call = calls.get(idOf(key));
      return call?.state === "sent"
        ? change(idOf(key), { ...call, state: "accepted" })
        : structuredClone(call);
    },
    async deliver(tokenHash, reply) {
      const [id, call] = [...calls].find(([, { token_hash }]) => token_hash === tokenHash) ?? [];
      if (!id || !call || call.state === "delivered" || Date.parse(call.expires_at) <= Date.now())
        return undefined;
      return change(id, { ...call, state: "delivered", reply });
    },
    async forget(key) {
      calls.delete(idOf(key));
    },
  };
}
