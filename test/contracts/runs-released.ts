// What every RunStore promises of runs that are given back, of calls to those who execute runs, and of what was begun when.

import { describe, expect, test } from "vitest";
import type { ControlMessage, Lease, Stores } from "../../src/agent/core/stores.ts";
import { ADA, claimed, done, inWorld, newRun, type Open, ruleTest, upTo } from "../engine/stores/fixture.ts";

const LEASE_MS = 10_000;

export function releasedRunsContract(open: Open): void {
  const rule = ruleTest(open);
  rule("released runs do not count as runs whose process died", () =>
    inWorld(open, async ({ stores, advance }) => {
      let { lease, run } = await claimed(stores, "t");
      const takenOver = async () => {
        const [claim] = await stores.runs.claimAbandoned(1);
        if (!claim) throw new Error("It was not taken over.");
        ({ lease, run } = claim);
      };
      for (const _ of upTo(5)) {
        await stores.runs.release(lease);
        await takenOver();
      }
      for (const _ of upTo(4)) {
        advance(LEASE_MS + 1);
        await takenOver();
      }
      await stores.runs.release(lease);
      await takenOver();
      expect(run.attempt).toBe(11);
      advance(LEASE_MS + 1);
      expect(await stores.runs.claimAbandoned(1)).toEqual([]);
      expect(await stores.runs.get(ADA, "t", run.id)).toMatchObject({
        ...{ status: "error", attempt: 11, error: { code: "crashed_too_often", details: { attempts: 5 } } },
      });
    }),
  );

  describe("a process that executes runs is notified", () => {
    /** The notifications from now on. */
    function heard(stores: Stores): ControlMessage[] {
      const calls: ControlMessage[] = [];
      stores.runs.subscribe((call) => void calls.push(call));
      return calls;
    }
    const hears = (calls: ControlMessage[], call: ControlMessage) =>
      expect.poll(() => calls.splice(0, calls.length)).toContainEqual(call);
    const WAITING: ControlMessage = { call: "waiting" };

    test("when a run must stop; a cancellation takes precedence over an interrupt", () =>
      inWorld(open, async ({ stores }) => {
        const { run } = await claimed(stores, "t");
        const calls = heard(stores);
        for (const [mode, wish] of [
          ["interrupt", "interrupt"],
          ["cancel", "cancel"],
          ["interrupt", "cancel"],
        ] as const) {
          await stores.runs.requestStop(ADA, "t", run.id, mode);
          await hears(calls, { call: "stop", run_id: run.id, mode: wish });
        }
      }));

    test("when a run is waiting, was released, or follows one that has ended", () =>
      inWorld(open, async ({ stores }) => {
        const calls = heard(stores);
        const asked = stores.runs.enqueue(ADA, newRun("t"), "reject");
        // Never in the middle of what changes the stores.
        expect(calls).toEqual([]);
        await asked;
        await hears(calls, WAITING);
        const [first] = await stores.runs.claimAbandoned(1);
        if (!first) throw new Error("It was not taken.");
        await stores.runs.start(ADA, newRun("t"), "queue");
        await stores.runs.release(first.lease);
        await hears(calls, WAITING);
        const [again] = await stores.runs.claimAbandoned(1);
        if (!again) throw new Error("It was not taken over.");
        await stores.events.append(again.lease, [done()]);
        await hears(calls, WAITING);
      }));

    test("when it can take waiting runs, even immediately", () =>
      inWorld(open, async ({ stores }) => {
        const taken: Lease[] = [];
        const failures: unknown[] = [];
        stores.runs.subscribe(() => {
          stores.runs.claimAbandoned(1).then(
            (claims) => taken.push(...claims.map(({ lease }) => lease)),
            (error) => failures.push(error),
          );
        });
        const { lease, run } = await claimed(stores, "t");
        const next = newRun("t");
        await stores.runs.start(ADA, next, "queue");
        await stores.runs.release(lease);
        await expect.poll(() => taken.map(({ run_id }) => run_id)).toEqual([run.id]);
        if (taken[0]) await stores.events.append(taken[0], [done()]);
        await expect.poll(() => taken.map(({ run_id }) => run_id)).toEqual([run.id, next.id]);
        const waiting = newRun("u");
        await stores.runs.enqueue(ADA, waiting, "reject");
        await expect.poll(() => taken.at(-1)?.run_id).toBe(waiting.id);
        expect(failures).toEqual([]);
      }));
  });

  if (open.rules)
    describe("started runs", () => {
      test("are listed in order of their first claims", () =>
        inWorld(open, async ({ stores, advance }) => {
          const begun = async (after?: string) => (await stores.runs.begun(ADA, "t", after))?.id;
          expect(await begun()).toBeUndefined();
          expect(await begun("")).toBeUndefined();
          const [a, b, c, d] = [newRun("t"), newRun("t"), newRun("t"), newRun("t")];
          let { lease } = await claimed(stores, "t", a);
          for (const run of [b, c]) await stores.runs.start(ADA, run, "queue");
          await stores.runs.enqueue(ADA, d, "front");
          await stores.runs.requestStop(ADA, "t", b.id, "cancel");
          for (const after of [a.id, b.id, c.id, d.id]) expect(await begun(after)).toBeUndefined();
          expect([await begun(), await begun("")]).toEqual([a.id, a.id]);

          advance(LEASE_MS + 1);
          for (const expected of [a, d, c]) {
            const [claim] = await stores.runs.claimAbandoned(1);
            expect(claim?.run.id).toBe(expected.id);
            lease = claim?.lease ?? lease;
            expect(await stores.runs.begun(ADA, "t")).toEqual(claim?.run);
            await stores.events.append(lease, [done()]);
          }
          const order: (string | undefined)[] = [];
          for (let run = await begun(""); run !== undefined; run = await begun(run)) order.push(run);
          expect(order).toEqual([a.id, d.id, c.id]);
          expect(await begun()).toBe(c.id);
          const place = (run: string) => stores.runs.place(ADA, "t", run);
          expect(await Promise.all([a, d, c].map(({ id }) => place(id)))).toEqual([1, 2, 3]);
          for (const never of [b.id, "run_unknown"]) expect(await place(never)).toBeUndefined();
          expect(await stores.runs.place({ ...ADA, user: "bob" }, "t", a.id)).toBeUndefined();
          for (const after of [b.id, "run_unknown"]) expect(await begun(after)).toBeUndefined();
          expect(await stores.runs.begun(ADA, "unknown")).toBeUndefined();
        }));
    });
}
