// What every RunStore promises.

import { describe, expect, test } from "vitest";
import { checkGrammar } from "../../src/core/grammar.ts";
import { NO_USAGE, userMessage } from "../../src/core/message.ts";
import {
  ADA,
  claimed,
  delta,
  done,
  eventsOf,
  failure,
  inWorld,
  message,
  newRun,
  note,
  type Open,
  readAll,
  said,
  seqsOf,
  upTo,
} from "../stores/fixture.ts";
import { resumedRunsContract } from "./runs-resumed.ts";
import { rewindContract } from "./runs-rewind.ts";
import { waitingRunsContract } from "./runs-waiting.ts";

const LEASE_MS = 10_000;

export function runsContract(open: Open): void {
  waitingRunsContract(open);
  resumedRunsContract(open);
  rewindContract(open);
  describe("runs", () => {
    test("are claimed when their thread is free, and make the thread", () =>
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

    test("are executed one at a time on a thread, however many are started at once", () =>
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

    test("are executed side by side on different threads", () =>
      inWorld(open, async ({ stores }) => {
        const claims = await Promise.all(Array.from({ length: 20 }, (_, n) => claimed(stores, `t${n}`)));
        await Promise.all(claims.map(({ lease }) => stores.events.append(lease, [message("x"), done()])));
        for (const { lease } of claims)
          expect((await stores.runs.get(ADA, lease.thread_id, lease.run_id))?.status).toBe("success");
      }));

    test("wait for a busy thread, and take their turn in order", () =>
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
        expect(await stores.runs.claimNext(ADA, "nobody")).toBeUndefined();
        expect(await stores.runs.active(ADA, "t")).toBeUndefined();
      }));

    test("do not overtake those who wait when the thread has just become free", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        await stores.events.append(lease, [done()]);
        await expect(stores.runs.start(ADA, newRun("t"), "reject")).rejects.toMatchObject({
          ...{ code: "thread_busy", details: { run_id: waiting.id } },
        });
        expect(await stores.runs.start(ADA, newRun("t"), "queue")).toMatchObject({ outcome: "queued" });
        expect((await stores.runs.claimNext(ADA, "t"))?.run.id).toBe(waiting.id);
      }));

    test("are taken by exactly one of those who reach for the next", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        for (let n = 0; n < 3; n++) await stores.runs.start(ADA, newRun("t"), "queue");
        await stores.events.append(lease, [done()]);
        const taken = await Promise.all(Array.from({ length: 10 }, () => stores.runs.claimNext(ADA, "t")));
        expect(taken.filter((claim) => claim !== undefined)).toHaveLength(1);
      }));

    test("are refused when too many wait", () =>
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
        },
        { queueLength: 3 },
      ));

    test("wait sixteen to a thread unless told otherwise", () =>
      inWorld(open, async ({ stores }) => {
        await claimed(stores, "t");
        for (let n = 0; n < 16; n++) await stores.runs.start(ADA, newRun("t"), "queue");
        await expect(stores.runs.start(ADA, newRun("t"), "queue")).rejects.toMatchObject({
          code: "queue_full",
        });
      }));

    test("are started once for each idempotency key of a thread", () =>
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

    test("have an id of their own", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t");
        await stores.events.append(lease, [done()]);
        await expect(stores.runs.start(ADA, newRun("t", { id: run.id }), "reject")).rejects.toMatchObject({
          code: "already_exists",
        });
        expect((await stores.runs.get(ADA, "t", run.id))?.status).toBe("success");
        expect((await stores.threads.get(ADA, "t"))?.status).toBe("idle");
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
        expect(await stores.runs.list(ADA, "nobody", { limit: 2 })).toEqual({ items: [] });
      }));

    test("end as `done` says, and free their thread", () =>
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

    test("that fail keep their error", () =>
      inWorld(open, async ({ stores }) => {
        const { lease, run } = await claimed(stores, "t");
        const data = { code: "model_auth", message: "No key.", details: { provider: "x", tried: [1, 2] } };
        await stores.events.append(lease, [{ event: "error", data }]);
        const ended = await stores.runs.get(ADA, "t", run.id);
        expect(ended).toMatchObject({ status: "error", error: data });
        expect(ended).not.toHaveProperty("stop_reason");
      }));

    describe("that are to stop", () => {
      test("end at once while they wait, and their readers with them", () =>
        inWorld(open, async ({ stores }) => {
          const { run: ahead } = await claimed(stores, "t");
          for (const mode of ["cancel", "interrupt"] as const) {
            const waiting = newRun("t", { agent: "coder" });
            await stores.runs.start(ADA, waiting, "queue");
            const reading = readAll(stores, { owner: ADA, thread_id: "t", run_id: waiting.id });
            const stopped = await stores.runs.requestStop(ADA, "t", waiting.id, mode);
            expect(stopped).toMatchObject({ status: "cancelled", stop_reason: "cancelled", attempt: 1 });
            expect(stopped).toHaveProperty("ended_at");
            const events = eventsOf(await reading);
            expect(checkGrammar(events)).toEqual([]);
            expect(events).toMatchObject([
              {
                event: "run_start",
                run_id: waiting.id,
                thread_id: "t",
                data: { agent: "coder", attempt: 1 },
              },
              { event: "done", run_id: waiting.id, thread_id: "t", data: { status: "cancelled" } },
            ]);
            expect(await stores.runs.get(ADA, "t", waiting.id)).toEqual(stopped);
          }
          expect((await stores.runs.active(ADA, "t"))?.id).toBe(ahead.id);
          expect((await stores.threads.get(ADA, "t"))?.status).toBe("busy");
          expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        }));

      test("are not executed when their turn comes", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b] = [newRun("t"), newRun("t")];
          for (const run of [a, b]) await stores.runs.start(ADA, run, "queue");
          await stores.runs.requestStop(ADA, "t", a.id, "cancel");
          await stores.events.append(lease, [done()]);
          expect((await stores.runs.claimNext(ADA, "t"))?.run.id).toBe(b.id);
        }));

      test("learn it when they renew their lease, the harder wish winning", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const stop = (mode: "cancel" | "interrupt") =>
            stores.runs.requestStop(ADA, "t", lease.run_id, mode);
          expect(await stores.runs.renew(lease)).toEqual({});
          expect(await stop("interrupt")).toMatchObject({ status: "running" });
          expect(await stores.runs.renew(lease)).toEqual({ stop: "interrupt" });
          await stop("cancel");
          await stop("interrupt");
          expect(await stores.runs.renew(lease)).toEqual({ stop: "cancel" });
        }));

      test("are left as they are when they have ended", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          await stores.events.append(lease, [done()]);
          expect(await stores.runs.requestStop(ADA, "t", lease.run_id, "cancel")).toMatchObject({
            status: "success",
          });
          expect(await readAll(stores, { ...lease })).toHaveLength(1);
          expect(await stores.runs.requestStop(ADA, "t", "run_unknown", "cancel")).toBeUndefined();
        }));
    });

    describe("are steered by messages that", () => {
      test("wait in the inbox until they are in the thread", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b] = [userMessage("a"), userMessage("b")];
          for (const left of [a, b]) expect(await stores.runs.steer(ADA, "t", lease.run_id, left)).toBe(true);
          expect(await stores.runs.inbox(lease)).toEqual([a, b]);
          expect(await stores.runs.inbox(lease)).toEqual([a, b]);
          expect(await stores.threads.messages(ADA, "t")).toEqual([]);
          await stores.events.append(lease, [said(a)]);
          expect(await stores.runs.inbox(lease)).toEqual([b]);
          expect(await stores.threads.messages(ADA, "t")).toEqual([a]);
        }));

      test("count once, however often they are sent", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const left = userMessage("a");
          const send = () => stores.runs.steer(ADA, "t", lease.run_id, left);
          expect(await Promise.all([send(), send()])).toEqual([true, true]);
          expect(await stores.runs.inbox(lease)).toEqual([left]);
          await stores.events.append(lease, [said(left)]);
          expect(await send()).toBe(true);
          expect(await stores.runs.inbox(lease)).toEqual([]);
        }));

      test("are refused when too many wait", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const sent = Array.from({ length: 16 }, (_, n) => userMessage(`${n}`));
          for (const left of sent) await stores.runs.steer(ADA, "t", lease.run_id, left);
          await expect(stores.runs.steer(ADA, "t", lease.run_id, userMessage("x"))).rejects.toMatchObject({
            code: "queue_full",
          });
          expect(await stores.runs.inbox(lease)).toEqual(sent);
          if (sent[0]) await stores.events.append(lease, [said(sent[0])]);
          expect(await stores.runs.steer(ADA, "t", lease.run_id, userMessage("x"))).toBe(true);
        }));

      test("reach only a run that is running", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const waiting = newRun("t");
          await stores.runs.start(ADA, waiting, "queue");
          const steer = (id: string) => stores.runs.steer(ADA, "t", id, userMessage("x"));
          expect(await steer(waiting.id)).toBe(false);
          expect(await steer("run_unknown")).toBe(false);
          await stores.events.append(lease, [done()]);
          expect(await steer(lease.run_id)).toBe(false);
          expect(await stores.threads.messages(ADA, "t")).toEqual([]);
        }));

      test("are never lost: what a run no longer takes in joins the thread at its end", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b, c] = [userMessage("a"), userMessage("b"), userMessage("c")];
          for (const left of [a, b, c]) await stores.runs.steer(ADA, "t", lease.run_id, left);
          await stores.events.append(lease, [said(a)]);
          await stores.events.append(lease, [said(b), done()]);
          expect(await stores.threads.messages(ADA, "t")).toEqual([a, b, c]);
          const entries = await readAll(stores, { ...lease });
          expect(seqsOf(entries)).toEqual(upTo(4));
          expect(eventsOf(entries)).toMatchObject([
            { event: "on_message", data: { message: a } },
            { event: "on_message", data: { message: b } },
            { event: "on_message", run_id: lease.run_id, thread_id: "t", data: { message: c } },
            { event: "done" },
          ]);
        }));
    });

    describe("whose process is gone", () => {
      test("are taken over one attempt later, once the lease was not renewed in time", () =>
        inWorld(open, async ({ stores, advance }) => {
          const news = newRun("t");
          const result = await stores.runs.start(ADA, news, "reject");
          if (result.outcome !== "claimed") throw new Error(result.outcome);
          const { lease } = result.claim;
          const left = userMessage("left");
          await stores.events.append(lease, [note("one"), message("kept")]);
          await stores.runs.steer(ADA, "t", lease.run_id, left);
          await stores.runs.requestStop(ADA, "t", lease.run_id, "interrupt");
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);

          advance(LEASE_MS + 1);
          const [claim, ...more] = await stores.runs.claimAbandoned(100);
          expect(more).toEqual([]);
          if (!claim) throw new Error("It was not taken over.");
          expect(claim.lease).toEqual({ ...lease, epoch: lease.epoch + 1 });
          expect(claim.run).toMatchObject({ id: news.id, status: "running", attempt: 2 });
          expect(claim.request).toEqual(news.request);
          expect(await stores.runs.inbox(claim.lease)).toEqual([left]);
          expect(await stores.runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
        }));

      test("can no longer be written by it, while seq goes on without a hole", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease } = await claimed(stores, "t");
          const reading = readAll(stores, { ...lease });
          await stores.events.append(lease, [note("one"), delta("two")]);
          advance(LEASE_MS + 1);
          const [claim] = await stores.runs.claimAbandoned(100);
          if (!claim) throw new Error("It was not taken over.");

          const lost = { code: "lease_lost" };
          await expect(stores.events.append(lease, [message("zombie")])).rejects.toMatchObject(lost);
          await expect(stores.events.append(lease, [done()])).rejects.toMatchObject(lost);
          await expect(stores.runs.renew(lease)).rejects.toMatchObject(lost);
          await expect(stores.runs.inbox(lease)).rejects.toMatchObject(lost);

          await stores.events.append(claim.lease, [note("three"), done()]);
          const entries = await reading;
          expect(seqsOf(entries)).toEqual(upTo(4));
          expect(entries.map(({ epoch }) => epoch - lease.epoch)).toEqual([0, 0, 1, 1]);
          expect(await stores.threads.messages(ADA, "t")).toEqual([]);
          expect(await stores.runs.get(ADA, "t", lease.run_id)).toMatchObject({
            status: "success",
            attempt: 2,
          });
        }));

      test("are taken over by exactly one of those who look", () =>
        inWorld(open, async ({ stores, advance }) => {
          for (let n = 0; n < 5; n++) await claimed(stores, `t${n}`);
          advance(LEASE_MS + 1);
          const taken = (
            await Promise.all(Array.from({ length: 8 }, () => stores.runs.claimAbandoned(100)))
          ).flat();
          expect(taken.map(({ lease }) => lease.thread_id).sort()).toEqual(["t0", "t1", "t2", "t3", "t4"]);
        }));

      test("stay with a process that renews in time", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease } = await claimed(stores, "t");
          for (let n = 0; n < 5; n++) {
            advance(LEASE_MS - 1);
            await stores.runs.renew(lease);
            expect(await stores.runs.claimAbandoned(100)).toEqual([]);
          }
          await stores.events.append(lease, [done()]);
        }));

      test("may still be written by it as long as nobody took over", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease } = await claimed(stores, "t");
          advance(10 * LEASE_MS);
          await stores.events.append(lease, [note("late")]);
          await stores.runs.renew(lease);
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
        }));

      test("fail after the third attempt, with every bracket closed, and free their thread", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease, run } = await claimed(stores, "t");
          const waiting = newRun("t");
          await stores.runs.start(ADA, waiting, "queue");
          const stamp = { run_id: run.id, thread_id: "t" };
          const model = { name: "m:x", data: { message_id: "msg_1", model: "m:x" } };
          const child = {
            ...{ id: "sub_1", call_id: "call_1", agent: "coder", name: "coder-1" },
            ...{ thread_id: "th_1", run_id: "run_1" },
          };
          await stores.events.append(lease, [
            { event: "run_start", ...stamp, data: { agent: "helper", model: "m:x", attempt: 1 } },
            { event: "on_chat_model_start", ...stamp, ...model },
            { event: "on_chat_model_end", ...stamp, name: "m:x", data: { message_id: "msg_1" } },
            { event: "on_tool_start", ...stamp, name: "f", data: { call_id: "call_0", args: {} } },
            { event: "on_tool_end", ...stamp, name: "f", data: { call_id: "call_0", duration_ms: 1 } },
            { event: "on_tool_start", ...stamp, name: "task", data: { call_id: "call_1", args: {} } },
            { event: "on_subagent_start", ...stamp, data: child },
            { event: "on_chat_model_start", ...stamp, path: ["sub_1"], ...model },
            { event: "on_chat_model_stream", path: ["sub_1"], data: { delta: "x" } },
          ]);
          const reading = readAll(stores, { ...lease });
          for (const attempt of [2, 3]) {
            advance(LEASE_MS + 1);
            expect(await stores.runs.claimAbandoned(100)).toMatchObject([{ run: { id: run.id, attempt } }]);
          }
          advance(LEASE_MS + 1);
          const claims = await Promise.all([
            stores.runs.claimAbandoned(100),
            stores.runs.claimAbandoned(100),
          ]);
          expect(claims.flat().map(({ run: { id } }) => id)).toEqual([waiting.id]);

          const ended = await stores.runs.get(ADA, "t", run.id);
          expect(ended).toMatchObject({ status: "error", attempt: 3, error: { code: "crashed_too_often" } });
          const entries = await reading;
          expect(seqsOf(entries)).toEqual(upTo(15));
          const events = eventsOf(entries);
          expect(checkGrammar(events)).toEqual([]);
          const answer = (tool_call_id: string) => ({
            event: "on_message",
            data: {
              message: { role: "tool", tool_call_id, error: expect.stringMatching(/^Outcome unknown/) },
            },
          });
          expect(events.slice(-6)).toMatchObject([
            { event: "on_chat_model_end", path: ["sub_1"], data: { message_id: "msg_1" } },
            { event: "on_subagent_end", data: { id: "sub_1", call_id: "call_1", status: "failed" } },
            { event: "on_tool_end", name: "task", data: { call_id: "call_1" } },
            ...[answer("call_0"), answer("call_1")],
            { event: "error", ...stamp, data: ended?.error ?? {} },
          ]);
        }));

      test("make no difference to a run that waits: it is taken when its thread is free", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b] = [newRun("t"), newRun("t")];
          for (const run of [a, b]) await stores.runs.start(ADA, run, "queue");
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
          // Whoever ended this run died before it took the next.
          await stores.events.append(lease, [failure("x")]);
          const claims = await stores.runs.claimAbandoned(100);
          expect(claims.map(({ run: { id, attempt } }) => [id, attempt])).toEqual([[a.id, 1]]);
        }));
    });
  });
}
