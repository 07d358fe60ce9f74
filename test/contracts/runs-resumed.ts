// What every RunStore promises of runs that resume another one, that are found by their key, and that are taken over by
// the next process that asks for their thread.

import { describe, expect, test } from "vitest";
import {
  ADA,
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

export function resumedRunsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("runs that resume another one", () => {
    test("name it whenever they are read", () =>
      inWorld(open, async ({ stores }) => {
        const { runs, events } = stores;
        const asking = await claimed(stores, "t");
        await events.append(asking.lease, [message("may I?"), done("interrupted")]);
        const resumes = asking.run.id;
        const { lease, run } = await claimed(stores, "t", { resumes, idempotency_key: "k" });
        expect(run).toMatchObject({ resumes });
        expect(await runs.active(ADA, "t")).toEqual(run);
        expect(await runs.begun(ADA, "t")).toEqual(run);
        const waiting = newRun("t", { resumes });
        expect(await runs.start(ADA, waiting, "queue")).toMatchObject({ run: { resumes } });
        await events.append(lease, [done()]);
        const ended = { ...run, status: "success", stop_reason: "end_turn", ended_at: run.created_at };
        expect(await runs.get(ADA, "t", run.id)).toEqual(ended);
        expect(await runs.known(ADA, "t", "k")).toEqual(ended);
        expect((await runs.claimNext(ADA, "t"))?.run).toMatchObject({ id: waiting.id, resumes });
        const { items } = await runs.list(ADA, "t", { limit: 10 });
        expect(items.map((each) => each.resumes)).toEqual([resumes, resumes, undefined]);
        expect(items[2]).not.toHaveProperty("resumes");
      }));

    rule("name it after a take-over, and if they never started", () =>
      inWorld(open, async ({ stores, advance }) => {
        await stores.runs.enqueue(ADA, newRun("t", { resumes: "run_1" }), "reject");
        for (const attempt of [1, 2]) {
          const [claim] = await stores.runs.claimAbandoned(1);
          expect(claim?.run).toMatchObject({ attempt, resumes: "run_1" });
          advance(LEASE_MS + 1);
        }
        const waiting = newRun("t", { resumes: "run_2" });
        await stores.runs.start(ADA, waiting, "queue");
        const stopped = await stores.runs.requestStop(ADA, "t", waiting.id, "cancel");
        expect(stopped).toMatchObject({ status: "cancelled", resumes: "run_2" });
      }),
    );
  });

  describe("runs with an idempotency key", () => {
    test("are found on their thread, in their current state", () =>
      inWorld(open, async ({ stores }) => {
        const { runs } = stores;
        const { lease, run } = await claimed(stores, "t", { idempotency_key: "k" });
        await claimed(stores, "u", { idempotency_key: "k" });
        expect(await runs.known(ADA, "t", "k")).toEqual(run);
        for (const [thread, key] of [
          ...[["t", "K"] as const, ["t", ""] as const, ["t", "__proto__"] as const],
          ...[["t", run.id] as const, ["unknown", "k"] as const],
        ])
          expect(await runs.known(ADA, thread, key), key).toBeUndefined();
        expect(await stores.threads.get(ADA, "unknown")).toBeUndefined();
        const waiting = newRun("t", { idempotency_key: "__proto__" });
        await runs.start(ADA, waiting, "queue");
        expect(await runs.known(ADA, "t", "__proto__")).toMatchObject({ id: waiting.id, status: "pending" });
        await stores.events.append(lease, [done()]);
        expect(await runs.known(ADA, "t", "k")).toMatchObject({ id: run.id, status: "success" });
      }));

    rule("are found until their thread is deleted", () =>
      inWorld(open, async ({ stores }) => {
        const { runs, threads } = stores;
        const { lease, run } = await claimed(stores, "t", { idempotency_key: "k" });
        await stores.events.append(lease, [message("x"), done()]);
        await threads.clear(ADA, "t");
        expect(await runs.known(ADA, "t", "k")).toMatchObject({ id: run.id });
        await threads.delete(ADA, "t");
        expect(await runs.known(ADA, "t", "k")).toBeUndefined();
        await claimed(stores, "t");
        expect(await runs.known(ADA, "t", "k")).toBeUndefined();
      }),
    );
  });

  describe("the run of a thread that no process executes any more", () => {
    test("is taken by exactly one of the processes that look for it, wherever they look", () =>
      inWorld(open, async ({ stores: { runs }, stores, advance }) => {
        const { run } = await claimed(stores, "t");
        await runs.start(ADA, newRun("t"), "queue");
        advance(LEASE_MS + 1);
        const looks = upTo(10).map(async (n) =>
          n % 2 ? [await runs.claimNext(ADA, "t")] : runs.claimAbandoned(10),
        );
        const taken = (await Promise.all(looks)).flat().filter((claim) => claim !== undefined);
        expect(taken.map((claim) => [claim.run.id, claim.run.attempt])).toEqual([[run.id, 2]]);
      }));
  });
}
