// What every EventLog promises: what is written is what happened, and how long it is kept.

import { describe, expect, test } from "vitest";
import { newRunId } from "../../src/agent/core/new-ids.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  eventsOf,
  failure,
  inWorld,
  keyOf,
  message,
  newRun,
  note,
  type Open,
  readAll,
  ruleTest,
  seqsOf,
  state,
  upTo,
} from "../engine/stores/fixture.ts";
import { eventReadersContract } from "./events-readers.ts";

export function eventsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("events", () => {
    test("are read as they were written, numbered from 1", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const events: StreamEvent[] = [
          { event: "run_start", run_id: "r", thread_id: "t", data: { agent: "a", model: "m", attempt: 1 } },
          delta("one\ntwo\u2028"),
          delta(""),
          {
            event: "on_chat_model_stream",
            path: ["call_1"],
            data: { tool_call: { index: 0, args_delta: "{" } },
          },
          delta("é😀\ud800"),
          note("x"),
          delta("last"),
          done(),
        ];
        await stores.events.append(claim.lease, events);
        const entries = await readAll(stores, keyOf(claim));
        expect(entries).toEqual(
          events.map((event, index) => ({
            ...{ epoch: claim.lease.epoch, seq: index + 1, event: event.event, json: JSON.stringify(event) },
          })),
        );
      }));

    test("have all their effects or none", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const circular: Record<string, unknown> = {};
        circular.self = circular;
        await expect(
          stores.events.append(lease, [message("x"), state("a", 1), state("b", circular)]),
        ).rejects.toBeDefined();
        await expect(
          stores.events.append(lease, [message("x"), done(), note("after the end")]),
        ).rejects.toBeDefined();
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect(await stores.threads.state(ADA, "t")).toEqual({});
        expect(await stores.events.bounds(lease)).toEqual({ first: 0, last: 0 });
        await stores.events.append(lease, [message("x"), state("a", 1), done()]);
        expect(seqsOf(await readAll(stores, lease))).toEqual([1, 2, 3]);
        expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
      }));

    rule("add a message once, even if they are sent again", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "t");
        const event = message("x");
        await stores.events.append(lease, [event, event]);
        advance(10_001);
        const [claim] = await stores.runs.claimAbandoned(100);
        if (!claim) throw new Error("It was not taken over.");
        await stores.events.append(claim.lease, [event, done()]);
        expect(await stores.threads.messages(ADA, "t")).toEqual([event.data.message]);
        expect((await stores.threads.get(ADA, "t"))?.message_count).toBe(1);
        const next = await claimed(stores, "t");
        await stores.events.append(next.lease, [event]);
        expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
      }),
    );

    rule("with a path belong to another thread, and are only shown", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const path = ["call_1"];
        await stores.events.append(lease, [
          { ...message("child"), path },
          { ...state("todos", ["child"]), path },
          { ...done(), path },
          { ...failure("child"), path },
        ]);
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect(await stores.threads.state(ADA, "t")).toEqual({});
        expect((await stores.runs.get(ADA, "t", lease.run_id))?.status).toBe("running");
        const reading = readAll(stores, lease);
        await stores.events.append(lease, [done()]);
        expect((await reading).map(({ event }) => event)).toEqual([
          "on_message",
          "on_state",
          "done",
          "error",
          "done",
        ]);
      }),
    );

    test("are refused once the run has ended", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const ends = [stores.events.append(lease, [done()]), stores.events.append(lease, [message("late")])];
        const results = await Promise.allSettled(ends);
        expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
        for (const event of [delta("late"), message("late"), done("error"), failure("late")])
          await expect(stores.events.append(lease, [event])).rejects.toMatchObject({ code: "lease_lost" });
        expect(await readAll(stores, lease)).toHaveLength(1);
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        expect((await stores.runs.get(ADA, "t", lease.run_id))?.status).toBe("success");
      }));

    test("are refused under a lease that does not exist", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        for (const wrong of [
          { ...lease, epoch: lease.epoch + 1 },
          { ...lease, epoch: lease.epoch - 1 },
          { ...lease, run_id: newRunId() },
          { ...lease, run_id: waiting.id },
          { ...lease, thread_id: "other" },
        ]) {
          const lost = { code: "lease_lost" };
          await expect(stores.events.append(wrong, [message("x")])).rejects.toMatchObject(lost);
          await expect(stores.runs.renew(wrong)).rejects.toMatchObject(lost);
          await expect(stores.runs.inbox(wrong)).rejects.toMatchObject(lost);
        }
        expect(await stores.threads.messages(ADA, "t")).toEqual([]);
      }));

    test("keep their order if an append does not wait for the previous one", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const appends: Promise<void>[] = [];
        for (let n = 0; n < 300; n++)
          appends.push(stores.events.append(claim.lease, [n % 50 === 49 ? message(`${n}`) : delta(`${n}`)]));
        appends.push(stores.events.append(claim.lease, [done()]));
        await Promise.all(appends);
        const texts = eventsOf(await readAll(stores, keyOf(claim))).flatMap((event) => {
          if (event.event === "on_message") return [event.data.message.content];
          return event.event === "on_chat_model_stream" && "delta" in event.data ? [event.data.delta] : [];
        });
        expect(texts).toEqual(Array.from({ length: 300 }, (_, n) => `${n}`));
      }));

    test("cannot be found for a run that does not exist", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        for (const key of [
          { ...keyOf(claim), run_id: "run_unknown" },
          { ...keyOf(claim), thread_id: "other" },
        ]) {
          await expect(readAll(stores, key)).rejects.toMatchObject({ code: "not_found" });
          expect(await stores.events.bounds(key)).toEqual({ first: 0, last: 0 });
        }
      }));

    test("do not exist beyond the end", () =>
      inWorld(open, async ({ stores }) => {
        const claim = await claimed(stores, "t");
        const expired = { code: "events_expired" };
        await expect(readAll(stores, keyOf(claim), 1)).rejects.toMatchObject(expired);
        await stores.events.append(claim.lease, [note("x")]);
        await expect(readAll(stores, keyOf(claim), 2)).rejects.toMatchObject(expired);
        await stores.events.append(claim.lease, [done()]);
        await expect(readAll(stores, keyOf(claim), 3)).rejects.toMatchObject(expired);
        for (const after of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])
          await expect(readAll(stores, keyOf(claim), after)).rejects.toMatchObject({ name: "AppError" });
      }));

    test("are limited in number, and a reader further behind gets an error", () =>
      inWorld(
        open,
        async ({ stores }) => {
          const claim = await claimed(stores, "t");
          const slow = stores.events.read(keyOf(claim), 0, new AbortController().signal);
          await stores.events.append(claim.lease, [note("first")]);
          await slow.next();
          const ten = upTo(10).map(() => delta("x"));
          await Promise.all(upTo(300).map(() => stores.events.append(claim.lease, ten)));
          expect(await stores.events.bounds(keyOf(claim))).toEqual({ first: 2902, last: 3001 });
          const expired = { code: "events_expired" };
          await expect(slow.next()).rejects.toMatchObject(expired);
          await expect(readAll(stores, keyOf(claim), 2900)).rejects.toMatchObject(expired);
          const live = stores.events.read(keyOf(claim), 2901, new AbortController().signal);
          // The reader has begun: what is dropped meanwhile it has.
          const seen = [...((await live.next()).value ?? [])];
          await stores.events.append(claim.lease, [done()]);
          for await (const batch of live) seen.push(...batch);
          expect(seqsOf(seen)).toEqual(upTo(3002, 2902));
          expect(await stores.events.bounds(keyOf(claim))).toEqual({ first: 2903, last: 3002 });
        },
        { eventsPerRun: 100 },
      ));

    test("are deleted some time after the end, which does not affect a reader that has read all", () =>
      inWorld(
        open,
        async ({ stores, advance }) => {
          const claim = await claimed(stores, "t");
          await stores.events.append(claim.lease, [message("kept"), delta("x"), done()]);
          advance(59_999);
          expect(await readAll(stores, keyOf(claim))).toHaveLength(3);
          advance(1);
          await expect(readAll(stores, keyOf(claim))).rejects.toMatchObject({ code: "events_expired" });
          expect(await stores.events.bounds(keyOf(claim))).toEqual({ first: 0, last: 0 });
          expect(await readAll(stores, keyOf(claim), 3)).toEqual([]);
          expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
          expect((await stores.runs.get(ADA, "t", claim.run.id))?.status).toBe("success");
        },
        { eventRetentionMs: 60_000 },
      ));
  });

  eventReadersContract(open);
}
