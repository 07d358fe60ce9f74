// What every RunStore promises of runs that wait for a process with room: whose turn it is.

import { describe, expect, test } from "vitest";
import type { NewRun, Stores } from "../../src/agent/core/stores.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import {
  ADA,
  BOB,
  claimed,
  done,
  inWorld,
  message,
  newRun,
  type Open,
  ruleTest,
  upTo,
} from "../engine/stores/fixture.ts";

const LEASE_MS = 10_000;

const OTHER: Owner = { tenant: "other", user: "eve" };
const THIRD: Owner = { tenant: "third", user: "ada" };

export function waitingRunsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("runs that wait for a process with a free slot", () => {
    test("are claimed by no process, although their thread is free, until one looks for them", () =>
      inWorld(open, async ({ stores }) => {
        const news = newRun("t", { metadata: { a: 1 } });
        const result = await stores.runs.enqueue(ADA, news, "reject");
        expect(result).toMatchObject({
          outcome: "queued",
          run: { id: news.id, status: "pending", attempt: 1, metadata: { a: 1 } },
        });
        expect(await stores.runs.get(ADA, "t", news.id)).toEqual(result.run);
        expect(await stores.runs.active(ADA, "t")).toBeUndefined();
        expect(await stores.threads.get(ADA, "t")).toMatchObject({ agent: "helper", status: "busy" });

        const [claim, ...more] = await stores.runs.claimAbandoned(10);
        expect(more).toEqual([]);
        expect(claim).toMatchObject({
          lease: { owner: ADA, thread_id: "t", run_id: news.id },
          run: { status: "running", attempt: 1 },
          request: news.request,
        });
        expect(await stores.runs.claimAbandoned(10)).toEqual([]);
        if (claim) await stores.events.append(claim.lease, [message("x"), done()]);
        expect(await stores.runs.get(ADA, "t", news.id)).toMatchObject({ status: "success" });
        expect(await stores.runs.claimAbandoned(10)).toEqual([]);
      }));

    rule("are the next on their thread, and are not overtaken", () =>
      inWorld(open, async ({ stores }) => {
        const [a, b] = [newRun("t"), newRun("t")];
        await stores.runs.enqueue(ADA, a, "reject");
        for (const start of [stores.runs.start, stores.runs.enqueue])
          await expect(start(ADA, newRun("t"), "reject")).rejects.toMatchObject({
            ...{ code: "thread_busy", details: { run_id: a.id } },
          });
        expect(await stores.runs.start(ADA, b, "queue")).toMatchObject({ outcome: "queued" });
        expect((await stores.runs.claimNext(ADA, "t"))?.run.id).toBe(a.id);
        expect(await stores.runs.claimAbandoned(10)).toEqual([]);
      }),
    );

    rule("leave a place for a run with precedence, however many are waiting", () =>
      inWorld(
        open,
        async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b, first] = [newRun("t"), newRun("t"), newRun("t")];
          for (const run of [a, b]) await stores.runs.start(ADA, run, "queue");
          expect(await stores.runs.start(ADA, first, "front")).toMatchObject({ outcome: "queued" });
          for (const how of ["queue", "front"] as const)
            for (const start of [stores.runs.start, stores.runs.enqueue])
              await expect(start(ADA, newRun("t"), how)).rejects.toMatchObject({ code: "queue_full" });
          let held = lease;
          for (const { id } of [first, a, b]) {
            await stores.events.append(held, [done()]);
            const claim = await stores.runs.claimNext(ADA, "t");
            expect(claim?.run.id).toBe(id);
            held = claim?.lease ?? held;
          }
        },
        { queueLength: 2 },
      ),
    );

    rule("can be cancelled meanwhile, which frees their thread", () =>
      inWorld(open, async ({ stores }) => {
        const news = newRun("t");
        await stores.runs.enqueue(ADA, news, "reject");
        expect(await stores.runs.requestStop(ADA, "t", news.id, "cancel")).toMatchObject({
          status: "cancelled",
        });
        expect(await stores.runs.claimAbandoned(10)).toEqual([]);
        expect(await stores.threads.get(ADA, "t")).toMatchObject({ status: "idle" });
        expect(await stores.threads.delete(ADA, "t")).toBe(true);
      }),
    );

    test("are refused on more threads of one tenant than can be busy, but not on another tenant's", () =>
      inWorld(
        open,
        async ({ stores, advance }) => {
          const { lease } = await claimed(stores, "active");
          const [a, b] = [newRun("a"), newRun("b")];
          await stores.runs.enqueue(ADA, a, "reject");
          await stores.runs.enqueue(BOB, b, "reject");
          for (const owner of [ADA, BOB])
            await expect(stores.runs.enqueue(owner, newRun("c"), "reject")).rejects.toMatchObject({
              code: "limit_exceeded",
            });
          expect(await stores.threads.get(ADA, "c")).toBeUndefined();
          expect(await stores.runs.enqueue(OTHER, newRun("c"), "reject")).toMatchObject({
            outcome: "queued",
          });
          // It is the threads that are counted.
          expect(await stores.runs.enqueue(ADA, newRun("a"), "queue")).toMatchObject({ outcome: "queued" });
          // A run for which there is room waits for none.
          await stores.events.append((await claimed(stores, "free")).lease, [done()]);

          await stores.events.append(lease, [done()]);
          await stores.runs.requestStop(BOB, "b", b.id, "cancel");
          advance(LEASE_MS + 1);
          await stores.runs.claimAbandoned(10);
          expect(await stores.runs.enqueue(ADA, newRun("c"), "reject")).toMatchObject({ outcome: "queued" });
        },
        { tenantQueueLength: 3 },
      ));

    test("do not count among the busy threads if they are refused or already exist", () =>
      inWorld(
        open,
        async ({ stores: { runs } }) => {
          const enqueue = (thread: string, more: Partial<NewRun> = {}) =>
            runs.enqueue(ADA, newRun(thread, more), "reject");
          for (const _ of upTo(2)) {
            for (const n of upTo(3))
              await expect(enqueue(`t${n}`, { rewind_to: "msg_unknown" })).rejects.toMatchObject({
                code: "invalid_request",
              });
            for (const thread of ["a", "b"])
              expect(await enqueue(thread)).toMatchObject({ outcome: "queued" });
            await expect(enqueue("c")).rejects.toMatchObject({ code: "limit_exceeded" });
            for (const thread of ["a", "b"])
              await runs.requestStop(
                ADA,
                thread,
                (await runs.list(ADA, thread, { limit: 1 })).items[0]?.id ?? "",
                "cancel",
              );
            for (const claim of await runs.claimAbandoned(10)) expect.fail(claim.run.id);
          }
        },
        { tenantQueueLength: 2 },
      ));

    test("are taken by exactly one of the processes that look, up to each one's free slots", () =>
      inWorld(open, async ({ stores }) => {
        for (const n of upTo(20)) await stores.runs.enqueue(ADA, newRun(`t${n}`), "reject");
        expect(await stores.runs.claimAbandoned(0)).toEqual([]);
        const taken = await Promise.all(upTo(4).map(() => stores.runs.claimAbandoned(3)));
        expect(taken.map((claims) => claims.length)).toEqual([3, 3, 3, 3]);
        const rest = await stores.runs.claimAbandoned(100);
        const threads = [...taken, rest].flat().map(({ lease }) => lease.thread_id);
        expect(threads.sort()).toEqual(
          upTo(20)
            .map((n) => `t${n}`)
            .sort(),
        );
      }));

    test("are taken in the order in which they started to wait, for any reason", () =>
      inWorld(open, async ({ stores, advance }) => {
        // The process of this one dies; it waits from the end of its lease on.
        await claimed(stores, "died");
        advance(1000);
        const { lease } = await claimed(stores, "free again");
        await stores.runs.enqueue(ADA, newRun("new"), "reject");
        advance(1000);
        await stores.runs.start(ADA, newRun("free again"), "queue");
        await stores.events.append(lease, [done()]);
        advance(LEASE_MS);
        await stores.runs.enqueue(ADA, newRun("newest"), "reject");
        advance(1);
        const order: string[] = [];
        for (let claims = await stores.runs.claimAbandoned(1); claims.length > 0; ) {
          order.push(...claims.map((claim) => claim.lease.thread_id));
          claims = await stores.runs.claimAbandoned(1);
        }
        expect(order).toEqual(["new", "free again", "died", "newest"]);
      }));

    test("are taken from each tenant in turn, however many one of them has", () =>
      inWorld(open, async ({ stores, advance }) => {
        await claimed(stores, "died", { owner: OTHER });
        for (const n of upTo(20)) await stores.runs.enqueue(n % 2 ? ADA : BOB, newRun(`t${n}`), "reject");
        advance(LEASE_MS + 1);
        for (const n of upTo(2)) await stores.runs.enqueue(THIRD, newRun(`t${n}`), "reject");
        advance(1);
        const look = (limit: number) => tenants(stores, limit);
        expect((await look(3)).sort()).toEqual(["acme", "other", "third"]);
        expect((await look(2)).sort()).toEqual(["acme", "third"]);
        await stores.runs.enqueue(OTHER, newRun("late"), "reject");
        advance(1);
        expect((await look(1)).concat(await look(1)).sort()).toEqual(["acme", "other"]);
        expect(await look(100)).toHaveLength(17);
        expect(await look(100)).toEqual([]);
      }));

    test("keep waiting, and keep their turn, while a process has no slot for their tenant", () =>
      inWorld(open, async ({ stores, advance }) => {
        for (const owner of [ADA, OTHER, THIRD])
          for (const n of upTo(3)) {
            await stores.runs.enqueue(owner, newRun(`t${n}`), "reject");
            advance(1);
          }
        const taken = async (limit: number, except: readonly string[]) =>
          (await stores.runs.claimAbandoned(limit, except)).map(({ lease }) => lease.owner.tenant);
        expect(await taken(2, ["acme", "other"])).toEqual(["third", "third"]);
        expect(await taken(3, ["third", "acme"])).toEqual(["other", "other", "other"]);
        advance(1);
        expect(await taken(10, ["acme", "absent"])).toEqual(["third"]);
        expect(await taken(10, ["acme"])).toEqual([]);
        expect(await taken(10, [])).toEqual(["acme", "acme", "acme"]);
      }));

    test("are counted until a process takes them, with the waiting time of the first", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { waiting } = stores.runs;
        expect(await waiting()).toEqual({ threads: 0, oldestMs: 0 });
        await stores.runs.enqueue(OTHER, newRun("t"), "reject");
        advance(2000);
        await stores.runs.enqueue(ADA, newRun("t"), "reject");
        await stores.runs.enqueue(ADA, newRun("u"), "reject");
        advance(1000);
        const found = await waiting();
        expect(found.threads).toBe(3);
        expect(found.oldestMs).toBeGreaterThanOrEqual(3000);
        await stores.runs.claimAbandoned(10);
        expect(await waiting()).toEqual({ threads: 0, oldestMs: 0 });
      }));

    rule("are taken instead of those that died too often", () =>
      inWorld(
        open,
        async ({ stores, advance }) => {
          const { run } = await claimed(stores, "died");
          advance(LEASE_MS + 1);
          await stores.runs.enqueue(ADA, newRun("t"), "reject");
          advance(1);
          expect((await stores.runs.claimAbandoned(1)).map(({ lease }) => lease.thread_id)).toEqual(["t"]);
          expect(await stores.runs.get(ADA, "died", run.id)).toMatchObject({
            ...{ status: "error", attempt: 1, error: { code: "crashed_too_often" } },
          });
          expect(await stores.runs.claimAbandoned(1)).toEqual([]);
        },
        { maxAttempts: 1 },
      ),
    );
  });
}

async function tenants(stores: Stores, limit: number): Promise<string[]> {
  const claims = await stores.runs.claimAbandoned(limit);
  return claims.map(({ lease }) => lease.owner.tenant);
}
