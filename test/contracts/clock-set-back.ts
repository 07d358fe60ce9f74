// What every store promises when its clock is set back, as by NTP or with a restored machine: nothing waits until the clock has caught up.

import { describe, expect, test } from "vitest";
import type { Claim } from "../../src/agent/core/stores.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { ADA, claimed, done, inWorld, newRun, note, type Open, upTo } from "../engine/stores/fixture.ts";
import { keyOf, LEASE_MS, newCall, reply, withThread } from "../engine/stores/fixture-calls.ts";

const HOUR = 3_600_000;
const OTHER: Owner = { tenant: "other", user: "ada" };
const NEW: Owner = { tenant: "new", user: "ada" };

export function clockSetBackContract(open: Open): void {
  /** The threads whose runs are taken. */
  const takenIn = async ({ runs }: AllStores, limit = 100) =>
    (await runs.claimAbandoned(limit)).map(({ lease }) => lease.thread_id);

  describe("after the clock was set back", () => {
    test.each([
      ["by an hour", HOUR],
      ["by a minute", 60_000],
    ])("%s, a run whose process died is taken over within a lease after the others have checked", (_, ms) =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease, run } = await claimed(stores, "t");
        advance(-ms);
        expect(await stores.runs.claimAbandoned(100)).toEqual([]);
        advance(LEASE_MS - 1);
        expect(await stores.runs.claimAbandoned(100)).toEqual([]);
        advance(2);
        const [claim] = await stores.runs.claimAbandoned(100);
        expect(claim).toMatchObject({ run: { id: run.id, attempt: 2 }, lease: { epoch: lease.epoch + 1 } });
      }),
    );

    test("a run stays with its process, which renews its lease", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "t");
        advance(-HOUR);
        for (const _ of upTo(4)) {
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
          expect(await stores.runs.claimNext(ADA, "t")).toBeUndefined();
          advance(LEASE_MS - 1);
          await stores.runs.renew(lease);
        }
        await stores.events.append(lease, [note("still there")]);
        // Its lease is as long as any other.
        advance(LEASE_MS + 1);
        expect(await takenIn(stores)).toEqual(["t"]);
      }));

    test("waiting runs are distributed immediately, before newer ones, and tenants take turns", () =>
      inWorld(open, async ({ stores, advance }) => {
        // Runs of one millisecond have no order.
        const enqueue = async (thread: string, owner = ADA) => {
          await stores.runs.enqueue(owner, newRun(thread), "reject");
          advance(1);
        };
        for (const n of upTo(3)) {
          await enqueue(`before-${n}`);
          await enqueue(`before-${n}`, OTHER);
        }
        // These tenants were served at a time that lies ahead as well.
        expect(await takenIn(stores, 2)).toEqual(["before-1", "before-1"]);
        advance(-HOUR);
        await enqueue("since");
        for (const n of upTo(3)) await enqueue(`since-${n}`, NEW);
        expect((await stores.runs.waiting()).threads).toBeGreaterThanOrEqual(8);
        const order: Claim["lease"][] = [];
        for (let [claim] = await stores.runs.claimAbandoned(1); claim; ) {
          order.push(claim.lease);
          advance(1);
          [claim] = await stores.runs.claimAbandoned(1);
        }
        const of = (tenant: string) =>
          order.flatMap(({ owner, thread_id }) => (owner.tenant === tenant ? thread_id : []));
        expect(of(ADA.tenant)).toEqual(["before-2", "before-3", "since"]);
        expect(of(OTHER.tenant)).toEqual(["before-2", "before-3"]);
        expect(of(NEW.tenant)).toEqual(["since-1", "since-2", "since-3"]);
        const turns = order.slice(0, 3).map(({ owner }) => owner.tenant);
        expect(turns.sort()).toEqual([ADA.tenant, NEW.tenant, OTHER.tenant]);
      }));

    test("a thread continues with its next run", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "t");
        await stores.runs.start(ADA, newRun("t"), "queue");
        advance(-HOUR);
        await stores.events.append(lease, [done()]);
        expect(await takenIn(stores)).toEqual(["t"]);
      }));
  });
}

/** For stores that know which deferred calls have their results without looking at each. */
export function resultsAfterClockSetBackContract(open: Open): void {
  test("after the clock was set back, a claimed result can be claimed again after a lease", () =>
    withThread(open, async ({ stores: { deferredCalls: calls }, advance }) => {
      const [delivered, awaited] = [newCall("delivered"), newCall("awaited")];
      for (const call of [delivered, awaited]) await calls.open(call);
      await calls.accept(keyOf(awaited));
      await calls.deliver(delivered.token_hash, reply(1));
      const due = [{ owner: ADA, thread_id: "t", call_ids: ["delivered"] }];
      expect(await calls.due(10)).toEqual(due);
      advance(-HOUR);
      expect(await calls.due(10)).toEqual(due);
      expect(await calls.due(10)).toEqual([]);
      advance(LEASE_MS);
      expect(await calls.due(10)).toEqual(due);
    }));
}
