// The port to deferred calls, in a map.

import {
  type CallChange,
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  stateAfter,
} from "../../../../src/agent/core/deferred-calls.ts";

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
  const changed = (key: CallKey, by: CallChange) => {
    const call = calls.get(idOf(key));
    const state = call && stateAfter(by, call.state);
    if (!state) return structuredClone(call);
    if (state !== "gone") return change(idOf(key), { ...call, state });
    calls.delete(idOf(key));
    return undefined;
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
      return changed(key, "accept");
    },
    async leave(key) {
      return changed(key, "leave");
    },
    async close(key) {
      return changed(key, "close");
    },
    async isKept(tokenHash) {
      return [...calls.values()].some(({ token_hash }) => token_hash === tokenHash);
    },
    async deliver(tokenHash, reply) {
      const [id, call] = [...calls].find(([, { token_hash }]) => token_hash === tokenHash) ?? [];
      const state = call && stateAfter("deliver", call.state);
      if (!id || !state || state === "gone" || Date.parse(call.expires_at) <= Date.now()) return undefined;
      return change(id, { ...call, state, reply });
    },
    async forget(key) {
      calls.delete(idOf(key));
    },
  };
}
