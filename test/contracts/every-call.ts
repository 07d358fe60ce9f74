// Every call of the stores except the readiness probe and the bus.

import { userMessage } from "../../src/agent/core/message.ts";
import type { Lease } from "../../src/agent/core/stores.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import { ADA, newRun, note } from "../engine/stores/fixture.ts";

const NEVER = new AbortController().signal;

/** `lease` is that of a run on thread `t`. */
export function everyCall(stores: AllStores, lease: Lease): readonly (() => Promise<unknown>)[] {
  const { threads, runs, events, documents, deferredCalls, items, owners, quotas } = stores;
  const tools = { kind: "tools", tenant: "acme" };
  const key = { owner: ADA, thread_id: "t", call_id: "c" };
  const shelves = [{ thread: "t" }, { agent: "a" }].map((of) => ({
    owner: ADA,
    of,
    kind: "notes" as const,
  }));
  const [most, amounts] = [
    { tenant: 10, user: 10 },
    { tokens: 1, cost: 1 },
  ];
  const about = { run_id: "r", tool: "w", token_hash: "", expires_at: new Date(0).toISOString() };
  return [
    () => deferredCalls.isKept("t"),
    () => threads.create(ADA, { id: "u", metadata: {} }),
    () => threads.get(ADA, "t"),
    () => threads.list(ADA, { limit: 1 }),
    () => threads.update(ADA, "t", { title: "x" }),
    () => threads.delete(ADA, "t"),
    () => threads.clear(ADA, "t"),
    () => threads.messages(ADA, "t"),
    () => threads.messagePage(ADA, "t", { bytes: 1 }),
    () => threads.bytes(ADA, "t"),
    () => threads.measured(ADA, "t"),
    () => threads.message(ADA, "t", "m"),
    () => threads.message(ADA, "t"),
    () => threads.fork(ADA, "t", { id: "copy", metadata: {} }),
    () => threads.state(ADA, "t"),
    () => runs.start(ADA, newRun("t"), "queue"),
    () => runs.enqueue(ADA, newRun("t"), "queue"),
    () => runs.get(ADA, "t", lease.run_id),
    () => runs.known(ADA, "t", "k"),
    () => runs.list(ADA, "t", { limit: 1 }),
    () => runs.active(ADA, "t"),
    () => runs.claimNext(ADA, "t"),
    () => runs.claimAbandoned(100),
    () => runs.requestStop(ADA, "t", lease.run_id, "cancel"),
    () => runs.steer(ADA, "t", lease.run_id, userMessage("x")),
    () => runs.inbox(lease),
    () => runs.renew(lease),
    () => runs.excuse(lease),
    () => runs.release(lease),
    () => runs.begun(ADA, "t"),
    () => runs.place(ADA, "t", "r"),
    () => events.append(lease, [note("x")]),
    () => events.bounds(lease),
    async () => events.read(lease, 0, NEVER).next(),
    () => documents.read(tools, ["weather"]),
    () => documents.list(tools),
    () => documents.due(tools, 1),
    () => documents.write(tools, [{ key: "weather", seen: undefined, body: "x" }], { version: "v1" }),
    () => deferredCalls.open({ ...key, ...about }),
    () => deferredCalls.get(key),
    () => deferredCalls.accept(key),
    () => deferredCalls.leave(key),
    () => deferredCalls.close(key),
    () => deferredCalls.deliver("", {}),
    () => deferredCalls.forget(key),
    () => deferredCalls.due(1),
    ...shelves.flatMap((shelf) => [
      () => items.get(shelf, "k"),
      () => items.list(shelf),
      () => items.put(shelf, { key: "k", value: 1 }),
      () => items.delete(shelf, "k"),
    ]),
    () => owners.tenants({ limit: 1 }),
    () => owners.list({ limit: 1 }),
    () => owners.shelves(ADA),
    () => quotas.take(ADA, most),
    () => quotas.hold(ADA, { thing: "runs", id: "r", ms: 1 }, most),
    () => quotas.release(ADA, "runs", "r"),
    () => quotas.held(ADA),
    () => quotas.setStored(ADA, { id: "t", bytes: 1, ms: 1 }, most),
    () => quotas.stored(ADA),
    () => quotas.reserve(ADA, { id: "c", amounts, ms: 1 }, { tenant: {}, user: {} }),
    () => quotas.settle(ADA, "c", undefined),
    () => quotas.accounts(ADA),
    () => quotas.usage(ADA, 1),
    () => quotas.tenantUsage(ADA.tenant, 1),
  ];
}
