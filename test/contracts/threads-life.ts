// What every ThreadStore promises of threads that have a time to live. Redis has a clock of its own, so time passes here
// until a thread has gone, however long a store takes for that.

import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";
import {
  ADA,
  BOB,
  claimed,
  done,
  inWorld,
  message,
  newRun,
  type Open,
  readAll,
  state,
} from "../engine/stores/fixture.ts";

const TTL = { threadTtlMs: 1500, interruptedTtlMs: 3_600_000 };

export function lifeContract(open: Open): void {
  describe("threads with a time to live", () => {
    test("are deleted with all their data once they have been unused for that time", () =>
      inWorld(
        open,
        async ({ stores, advance }) => {
          const shelf = { owner: ADA, of: { thread: "idle" }, kind: "notes" as const };
          const { lease } = await claimed(stores, "idle");
          const left = { thread_id: "idle", run_id: lease.run_id, call_id: "c", background: true };
          await stores.threads.create(ADA, { id: "child", metadata: {}, parent: left });
          await stores.events.append(lease, [message("old"), state("todos", ["old"]), done()]);
          await stores.items.put(shelf, { key: "k", value: 1 });
          await stores.threads.create(BOB, { id: "idle", metadata: {} });
          while ((await listed(stores)).length > 0) advance(50);

          expect(await stores.threads.get(ADA, "idle")).toBeUndefined();
          expect(await stores.threads.get(ADA, "child")).toBeUndefined();
          expect(await stores.threads.messages(ADA, "idle")).toEqual([]);
          expect(await stores.threads.state(ADA, "idle")).toEqual({});
          expect(await stores.runs.get(ADA, "idle", lease.run_id)).toBeUndefined();
          await expect(readAll(stores, lease)).rejects.toMatchObject({ code: "not_found" });
          expect(await stores.items.list(shelf)).toEqual([]);
          await claimed(stores, "idle");
          expect(await stores.threads.messages(ADA, "idle")).toEqual([]);
          expect(await stores.threads.state(ADA, "idle")).toEqual({});
        },
        TTL,
      ));

    test("are kept while they are used, have an active or waiting run, or wait for an answer", () =>
      inWorld(
        open,
        async ({ stores, advance }) => {
          const reads = readsOf(stores);
          for (const id of ["idle", ...Object.keys(reads)])
            await stores.threads.create(ADA, { id, metadata: {} });
          const asks = await claimed(stores, "asks");
          await stores.events.append(asks.lease, [message("may I?"), done("interrupted")]);
          const active = await claimed(stores, "active");
          await stores.runs.start(ADA, newRun("active"), "queue");
          while ((await listed(stores)).includes("idle")) {
            for (const [id, read] of Object.entries(reads)) await read(id);
            advance(50);
          }
          expect((await listed(stores)).sort()).toEqual(["active", "asks", ...Object.keys(reads)].sort());
          expect(await stores.threads.messages(ADA, "asks")).toHaveLength(1);

          // Its time begins with the end of its last run.
          await stores.events.append(active.lease, [message("x"), done()]);
          const next = await stores.runs.claimNext(ADA, "active");
          while ((await listed(stores)).some((id) => id in reads)) advance(50);
          expect((await listed(stores)).sort()).toEqual(["active", "asks"]);
          if (next) await stores.events.append(next.lease, [done()]);
          expect(await stores.threads.messages(ADA, "active")).toHaveLength(1);
          while ((await listed(stores)).includes("active")) advance(50);
          expect(await listed(stores)).toEqual(["asks"]);
        },
        TTL,
      ));
  });
}

/** Each way to read a thread, which uses it. */
function readsOf({ threads, items }: Stores): Record<string, (id: string) => Promise<unknown>> {
  return {
    thread: (id) => threads.get(ADA, id),
    messages: (id) => threads.messages(ADA, id),
    message: (id) => threads.message(ADA, id),
    state: (id) => threads.state(ADA, id),
    items: (id) => items.list({ owner: ADA, of: { thread: id }, kind: "notes" }),
  };
}

/** Listing uses no thread. */
async function listed({ threads }: Stores): Promise<string[]> {
  return (await threads.list(ADA, { limit: 20, children: true })).items.map(({ id }) => id);
}
