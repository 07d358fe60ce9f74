// What every RunStore promises.

import { describe, expect, test } from "vitest";
import { NO_USAGE, userMessage } from "../../src/agent/core/message.ts";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import {
  ADA,
  claimed,
  done,
  inWorld,
  message,
  newRun,
  type Open,
  ruleTest,
} from "../engine/stores/fixture.ts";
import { branchContract } from "./branches.ts";
import { clockSetBackContract } from "./clock-set-back.ts";
import { releasedRunsContract } from "./runs-released.ts";
import { resumedRunsContract } from "./runs-resumed.ts";
import { rewindContract } from "./runs-rewind.ts";
import { stoppedRunsContract } from "./runs-stopped.ts";
import { takenOverRunsContract } from "./runs-taken-over.ts";
import { waitingRunsContract } from "./runs-waiting.ts";

export function runsContract(open: Open): void {
  const rule = ruleTest(open);
  waitingRunsContract(open);
  releasedRunsContract(open);
  stoppedRunsContract(open);
  takenOverRunsContract(open);
  clockSetBackContract(open);
  resumedRunsContract(open);
  rewindContract(open);
  if (open.rules) branchContract(open);
  describe("runs", () => {
    test("are claimed if their thread is free, and create the thread", () =>
      inWorld(open, async ({ stores }) => {
        const news = newRun("t", {
          metadata: { a: 1 },
          request: { model: "m:x", settings: { temperature: 1 }, input: [userMessage("hi")] },
        });
        const result = await stores.runs.start(ADA, news, "reject");
        if (result.outcome !== "claimed") throw new Error(result.outcome);
        expect(result.claim.lease).toMatchObject({ owner: ADA, thread_id: "t", run_id: news.id });
        expect(result.claim.request).toEqual(news.request);
        expect(result.claim.run).toEqual({
          ...{ id: news.id, thread_id: "t", agent: "helper", status: "running", attempt: 1, usage: NO_USAGE },
          ...{ metadata: { a: 1 }, created_at: "2026-11-21T10:00:00.000Z" },
        });
        expect(await stores.runs.get(ADA, "t", news.id)).toEqual(result.claim.run);
        expect(await stores.runs.active(ADA, "t")).toEqual(result.claim.run);
        expect(await stores.threads.get(ADA, "t")).toMatchObject({ agent: "helper", status: "busy" });
      }));

    test("are executed one at a time per thread, however many are started at once", () =>
      inWorld(open, async ({ stores }) => {
        const starts = await Promise.allSettled(
          Array.from({ length: 50 }, () => stores.runs.start(ADA, newRun("t"), "reject")),
        );
        const won = starts.filter((start) => start.status === "fulfilled").map(({ value }) => value);
        const lost = starts.filter((start) => start.status === "rejected").map(({ reason }) => reason);
        expect(won.map(({ outcome }) => outcome)).toEqual(["claimed"]);
        const running = await stores.runs.active(ADA, "t");
        for (const error of lost)
          expect(error).toMatchObject({ code: "thread_busy", details: { run_id: running?.id } });
        expect((await stores.runs.list(ADA, "t", { limit: 100 })).items).toHaveLength(1);
      }));

    rule("wait for a busy thread, and start in order", () =>
      inWorld(open, async ({ stores }) => {
        const first = await claimed(stores, "t");
        const [a, b, c] = [newRun("t"), newRun("t"), newRun("t")];
        for (const run of [a, b]) {
          expect(await stores.runs.start(ADA, run, "queue")).toMatchObject({
            ...{ outcome: "queued", run: { id: run.id, status: "pending", attempt: 1 } },
          });
        }
        await stores.runs.start(ADA, c, "front");
        expect(await stores.runs.claimNext(ADA, "t")).toBeUndefined();
        let { lease } = first;
        for (const expected of [c, a, b]) {
          await stores.events.append(lease, [done()]);
          const claim = await stores.runs.claimNext(ADA, "t");
          expect(claim?.run).toMatchObject({ id: expected.id, status: "running", attempt: 1 });
          expect(claim?.request).toEqual(expected.request);
          if (claim) lease = claim.lease;
        }
        await stores.events.append(lease, [done()]);
        expect(await stores.runs.claimNext(ADA, "t")).toBeUndefined();
        expect(await stores.runs.claimNext(ADA, "unknown")).toBeUndefined();
        expect(await stores.runs.active(ADA, "t")).toBeUndefined();
      }),
    );

    test("are taken by exactly one of the processes that claim the next one", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        for (let n = 0; n < 3; n++) await stores.runs.start(ADA, newRun("t"), "queue");
        await stores.events.append(lease, [done()]);
        const taken = await Promise.all(Array.from({ length: 10 }, () => stores.runs.claimNext(ADA, "t")));
        expect(taken.filter((claim) => claim !== undefined)).toHaveLength(1);
      }));

    rule("are refused if too many are waiting", () =>
      inWorld(
        open,
        async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          for (let n = 0; n < 3; n++) await stores.runs.start(ADA, newRun("t"), "queue");
          await expect(stores.runs.start(ADA, newRun("t"), "queue")).rejects.toMatchObject({
            code: "queue_full",
          });
          expect((await stores.runs.list(ADA, "t", { limit: 10 })).items).toHaveLength(4);
          await stores.events.append(lease, [done()]);
          await stores.runs.claimNext(ADA, "t");
          expect(await stores.runs.start(ADA, newRun("t"), "queue")).toMatchObject({ outcome: "queued" });
          await expect(stores.runs.start(ADA, newRun("t"), "queue")).rejects.toMatchObject({
            code: "queue_full",
          });
        },
        { queueLength: 3 },
      ),
    );

    rule("are limited to sixteen waiting ones per thread by default", () =>
      inWorld(open, async ({ stores }) => {
        await claimed(stores, "t");
        for (let n = 0; n < 16; n++) await stores.runs.start(ADA, newRun("t"), "queue");
        await expect(stores.runs.start(ADA, newRun("t"), "queue")).rejects.toMatchObject({
          code: "queue_full",
        });
      }),
    );

    test("are started once per idempotency key on a thread", () =>
      inWorld(open, async ({ stores }) => {
        const again = () => stores.runs.start(ADA, newRun("t", { idempotency_key: "k" }), "reject");
        const results = await Promise.all(Array.from({ length: 20 }, again));
        const claims = results.flatMap((result) => (result.outcome === "claimed" ? [result.claim] : []));
        expect(claims).toHaveLength(1);
        const [claim] = claims;
        if (!claim) return;
        for (const result of results)
          if (result.outcome !== "claimed")
            expect(result).toMatchObject({ outcome: "known", run: { id: claim.run.id } });

        expect(
          await stores.runs.start(ADA, newRun("other", { idempotency_key: "k" }), "reject"),
        ).toMatchObject({
          outcome: "claimed",
        });
        await stores.events.append(claim.lease, [done()]);
        expect(await again()).toMatchObject({
          outcome: "known",
          run: { id: claim.run.id, status: "success" },
        });
        expect(await stores.runs.start(ADA, newRun("t", { idempotency_key: "K" }), "reject")).toMatchObject({
          outcome: "claimed",
        });
      }));

    test("are listed newest first, page by page", () =>
      inWorld(open, async ({ stores }) => {
        const ids: string[] = [];
        for (let n = 0; n < 5; n++) {
          const { lease } = await claimed(stores, "t");
          await stores.events.append(lease, [done()]);
          ids.unshift(lease.run_id);
        }
        const first = await stores.runs.list(ADA, "t", { limit: 2 });
        const second = await stores.runs.list(ADA, "t", { limit: 2, cursor: first.next_cursor ?? "" });
        await claimed(stores, "t");
        const third = await stores.runs.list(ADA, "t", { limit: 2, cursor: second.next_cursor ?? "" });
        expect([first, second, third].flatMap(({ items }) => items.map(({ id }) => id))).toEqual(ids);
        expect(third).not.toHaveProperty("next_cursor");
        expect(await stores.runs.list(ADA, "unknown", { limit: 2 })).toEqual({ items: [] });
      }));

    test("end with the status in `done`, and free their thread", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease, run } = await claimed(stores, "t");
        const usage = { input_tokens: 5, output_tokens: 7, cache_read_tokens: 1, cache_write_tokens: 2 };
        advance(1500);
        await stores.events.append(lease, [
          message("x"),
          done("interrupted", { stop_reason: "tool_use", usage }),
        ]);
        expect(await stores.runs.get(ADA, "t", run.id)).toEqual({
          ...run,
          ...{ status: "interrupted", stop_reason: "tool_use", usage, ended_at: "2026-11-21T10:00:01.500Z" },
        });
        expect(await stores.runs.active(ADA, "t")).toBeUndefined();
        expect(await stores.runs.start(ADA, newRun("t"), "reject")).toMatchObject({ outcome: "claimed" });
      }));

    test("end no later than their thread's last change", async () => {
      let time = Date.parse("2026-11-21T10:00:00.000Z");
      const body = async ({ stores }: { stores: AllStores }) => {
        const { lease, run } = await claimed(stores, "t");
        await stores.events.append(lease, [message("x"), done()]);
        const ended = (await stores.runs.get(ADA, "t", run.id))?.ended_at ?? expect.fail();
        const changed = (await stores.threads.get(ADA, "t"))?.updated_at ?? expect.fail();
        expect(Date.parse(ended)).toBeLessThanOrEqual(Date.parse(changed));
      };
      await inWorld(open, body, { now: () => ++time });
    });

    test("that end at a limit keep its details", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t");
        const details = { message: "Enough.", limit: "cost_per_day", most: 2, currency: "EUR" };
        await stores.events.append(lease, [done("error", { stop_reason: "quota", details })]);
        const ended = await stores.runs.get(ADA, "t", run.id);
        expect(ended).toMatchObject({ status: "error", stop_reason: "quota", details });
        expect(ended).not.toHaveProperty("error");
      }));

    test("that fail keep their error", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t");
        const data = { code: "model_auth", message: "No key.", details: { provider: "x", tried: [1, 2] } };
        await stores.events.append(lease, [{ event: "error", data }]);
        const ended = await stores.runs.get(ADA, "t", run.id);
        expect(ended).toMatchObject({ status: "error", error: data });
        expect(ended).not.toHaveProperty("stop_reason");
      }));
  });
}
