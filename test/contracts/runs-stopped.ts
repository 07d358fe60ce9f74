// What every RunStore promises of runs that are to stop, and of messages for an active run.

import { describe, expect, test } from "vitest";
import { userMessage } from "../../src/agent/core/message.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
import {
  ADA,
  claimed,
  done,
  eventsOf,
  inWorld,
  newRun,
  type Open,
  readAll,
  ruleTest,
  said,
  seqsOf,
  upTo,
} from "../engine/stores/fixture.ts";

export function stoppedRunsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("runs", () => {
    describe("that are asked to stop", () => {
      test("end immediately while they wait, and so do their readers", () =>
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

      rule("are not executed when their turn comes", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b] = [newRun("t"), newRun("t")];
          for (const run of [a, b]) await stores.runs.start(ADA, run, "queue");
          await stores.runs.requestStop(ADA, "t", a.id, "cancel");
          await stores.events.append(lease, [done()]);
          expect((await stores.runs.claimNext(ADA, "t"))?.run.id).toBe(b.id);
        }),
      );

      test("learn about it when they renew their lease, and a cancellation takes precedence", () =>
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

      rule("do not change if they have ended", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          await stores.events.append(lease, [done()]);
          expect(await stores.runs.requestStop(ADA, "t", lease.run_id, "cancel")).toMatchObject({
            status: "success",
          });
          expect(await readAll(stores, { ...lease })).toHaveLength(1);
          expect(await stores.runs.requestStop(ADA, "t", "run_unknown", "cancel")).toBeUndefined();
        }),
      );
    });

    describe("receive steering messages that", () => {
      test("wait in the inbox until they are added to the thread", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const first = userMessage("first");
          const rest = upTo(9).map((n) => userMessage(`${n}`));
          for (const left of [first, ...rest])
            expect(await stores.runs.steer(ADA, "t", lease.run_id, left)).toBe(true);
          expect(await stores.runs.inbox(lease)).toEqual([first, ...rest]);
          expect(await stores.runs.inbox(lease)).toEqual([first, ...rest]);
          expect(await stores.threads.messages(ADA, "t")).toEqual([]);
          await stores.events.append(lease, [said(first)]);
          expect(await stores.runs.inbox(lease)).toEqual(rest);
          expect(await stores.threads.messages(ADA, "t")).toEqual([first]);
        }));

      rule("count once, however often they are sent", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const left = userMessage("a");
          const send = () => stores.runs.steer(ADA, "t", lease.run_id, left);
          expect(await Promise.all([send(), send()])).toEqual([true, true]);
          expect(await stores.runs.inbox(lease)).toEqual([left]);
          await stores.events.append(lease, [said(left)]);
          expect(await send()).toBe(true);
          expect(await stores.runs.inbox(lease)).toEqual([]);
        }),
      );

      rule("are refused if too many are waiting", () =>
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
          await expect(stores.runs.steer(ADA, "t", lease.run_id, userMessage("y"))).rejects.toMatchObject({
            code: "queue_full",
          });
        }),
      );

      rule("can only reach a run in progress", () =>
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
        }),
      );

      test("are never lost: unread messages are added to the thread at the end of the run", () =>
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
  });
}
