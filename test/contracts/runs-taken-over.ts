// What every RunStore promises of runs whose process died.

import { describe, expect, test } from "vitest";
import { assistantMessage, userMessage } from "../../src/agent/core/message.ts";
import type { Lease } from "../../src/agent/core/stores.ts";
import type { StreamEvent } from "../../src/protocol/event.ts";
import { checkGrammar } from "../../src/protocol/grammar.ts";
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
  ruleTest,
  seqsOf,
  upTo,
  type World,
} from "../engine/stores/fixture.ts";

const LEASE_MS = 10_000;

/** How a process leaves its runs. */
const LEAVING: [how: string, leave: (world: World, lease: Lease) => Promise<void>][] = [
  ["released them", ({ stores }, lease) => stores.runs.release(lease)],
  ["died", async ({ advance }) => advance(LEASE_MS + 1)],
];

export function takenOverRunsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("runs", () => {
    describe.each(LEAVING)("whose process %s", (how, leave) => {
      test("are taken over one attempt later, with everything that they left", () =>
        inWorld(open, async (world) => {
          const { runs, events } = world.stores;
          const { lease, run, request } = await claimed(world.stores, "t");
          const left = userMessage("left");
          await events.append(lease, [note("one"), message("kept")]);
          await runs.steer(ADA, "t", run.id, left);
          await runs.requestStop(ADA, "t", run.id, "interrupt");
          await runs.start(ADA, newRun("t"), "queue");
          expect(await runs.claimAbandoned(100)).toEqual([]);

          await leave(world, lease);
          expect((await runs.active(ADA, "t"))?.id).toBe(run.id);
          const [claim, ...more] = await runs.claimAbandoned(100);
          expect(more).toEqual([]);
          if (!claim) throw new Error("It was not taken over.");
          expect(claim.lease).toEqual({ ...lease, epoch: lease.epoch + 1 });
          expect(claim.run).toMatchObject({ id: run.id, status: "running", attempt: 2 });
          expect(claim.request).toEqual(request);
          expect(await runs.inbox(claim.lease)).toEqual([left]);
          expect(await runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
          expect(await runs.claimAbandoned(100)).toEqual([]);
        }));

      test("can no longer be written by it, and seq continues without a gap", () =>
        inWorld(open, async (world) => {
          const { runs, events, threads } = world.stores;
          const { lease } = await claimed(world.stores, "t");
          const reading = readAll(world.stores, { ...lease });
          await events.append(lease, [note("one"), delta("two")]);
          await leave(world, lease);
          const lost = { code: "lease_lost" };
          const isRefused = async () => {
            for (const event of [note("late"), message("late"), done()])
              await expect(events.append(lease, [event])).rejects.toMatchObject(lost);
            await expect(runs.renew(lease)).rejects.toMatchObject(lost);
          };
          // Who has died may return until then.
          if (how === "released them") await isRefused();
          const [claim] = await runs.claimAbandoned(100);
          if (!claim) throw new Error("It was not taken over.");
          await isRefused();
          for (const call of [runs.inbox, runs.release])
            await expect(call(lease)).rejects.toMatchObject(lost);

          await events.append(claim.lease, [note("three"), done()]);
          await expect(runs.release(claim.lease)).rejects.toMatchObject(lost);
          const entries = await reading;
          expect(seqsOf(entries)).toEqual(upTo(4));
          expect(entries.map(({ epoch }) => epoch - lease.epoch)).toEqual([0, 0, 1, 1]);
          expect(await threads.messages(ADA, "t")).toEqual([]);
          expect(await runs.get(ADA, "t", lease.run_id)).toMatchObject({ status: "success", attempt: 2 });
        }));
    });

    describe("whose process died", () => {
      test("are taken over by exactly one of the processes that look for them", () =>
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

      test("can still be written by it until another process takes over", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease } = await claimed(stores, "t");
          advance(10 * LEASE_MS);
          await stores.events.append(lease, [note("late")]);
          await stores.runs.renew(lease);
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
        }));

      test("fail after the fifth attempt, with every span closed, and free their thread", () =>
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
          ]);
          // Progress alone, which a store may keep in another place.
          await stores.events.append(lease, [
            { event: "on_chat_model_start", ...stamp, path: ["sub_1"], ...model },
            { event: "on_chat_model_stream", path: ["sub_1"], data: { delta: "x" } },
          ]);
          const reading = readAll(stores, { ...lease });
          for (const attempt of [2, 3, 4, 5]) {
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
          expect(ended).toMatchObject({ status: "error", attempt: 5, error: { code: "crashed_too_often" } });
          const entries = await reading;
          expect(seqsOf(entries)).toEqual(upTo(16));
          const events = eventsOf(entries);
          expect(checkGrammar(events)).toEqual([]);
          const answer = (tool_call_id: string) => ({
            event: "on_message",
            data: {
              message: { role: "tool", tool_call_id, error: expect.stringMatching(/^Outcome unknown/) },
            },
          });
          // Its message, which it had not got to.
          expect((await stores.threads.messages(ADA, "t"))[0]).toMatchObject({ content: "hello" });
          expect(events.slice(-7)).toMatchObject([
            { event: "on_chat_model_end", path: ["sub_1"], data: { message_id: "msg_1" } },
            { event: "on_subagent_end", data: { id: "sub_1", call_id: "call_1", status: "failed" } },
            { event: "on_tool_end", name: "task", data: { call_id: "call_1" } },
            { event: "on_message", data: { message: { role: "user", content: "hello" } } },
            ...[answer("call_0"), answer("call_1")],
            { event: "error", ...stamp, data: ended?.error ?? {} },
          ]);
        }));

      test("too often keep the text that the last attempt was writing, as an incomplete message", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease, request } = await claimed(stores, "t");
          const begin = (message_id: string): StreamEvent => ({
            event: "on_chat_model_start",
            name: "m:x",
            data: { message_id, model: "m:x" },
          });
          const asked = request.input.map(
            (each): StreamEvent => ({ event: "on_message", data: { message: each } }),
          );
          await stores.events.append(lease, [
            { event: "run_start", data: { agent: "helper", model: "m:x", attempt: 1 } },
            ...[...asked, begin("msg_1"), delta("gone")],
          ]);
          advance(LEASE_MS + 1);
          const [again] = await stores.runs.claimAbandoned(100);
          if (!again) throw new Error("It was not taken over.");
          await stores.events.append(again.lease, [
            { event: "message_discard", data: { message_id: "msg_1" } },
            ...[begin("msg_2"), delta("Once upon "), delta("a time")],
          ]);
          for (let died = 2; died <= 5; died++) {
            advance(LEASE_MS + 1);
            await stores.runs.claimAbandoned(100);
          }
          const events = eventsOf(await readAll(stores, { ...lease }));
          expect(events.at(-1)).toMatchObject({ event: "error", data: { code: "crashed_too_often" } });
          expect(checkGrammar(events)).toEqual([]);
          expect((await stores.threads.messages(ADA, "t")).slice(1)).toMatchObject([
            {
              id: "msg_2",
              role: "assistant",
              content: "Once upon a time",
              model: "m:x",
              incomplete: "failed",
            },
          ]);
        }));

      rule("too often leave none of the calls open that a user started them with", () =>
        inWorld(open, async ({ stores, advance }) => {
          const call = { id: "call_1", name: "pay", args: {} };
          const given = { ...assistantMessage("", call), by_user: true as const };
          const { lease } = await claimed(stores, "t", { request: { settings: {}, input: [given] } });
          for (let died = 1; died <= 5; died++) {
            advance(LEASE_MS + 1);
            await stores.runs.claimAbandoned(100);
          }
          expect((await stores.runs.get(ADA, "t", lease.run_id))?.status).toBe("error");
          expect(await stores.threads.messages(ADA, "t")).toMatchObject([
            { id: given.id, by_user: true },
            { role: "tool", tool_call_id: "call_1", error: expect.stringMatching(/^Not run/) },
          ]);
        }),
      );

      test("twice are claimed one at a time, and never together with another run that died", () =>
        inWorld(open, async ({ stores, advance }) => {
          const ids = new Set<string>();
          for (const n of upTo(3)) ids.add((await claimed(stores, `t${n}`)).run.id);
          advance(LEASE_MS + 1);
          expect(await stores.runs.claimAbandoned(100, [], 0)).toEqual([]);
          advance(LEASE_MS / 4);
          expect(await stores.runs.claimAbandoned(100, [], 1)).toMatchObject(
            upTo(3).map(() => ({ deaths: 1 })),
          );
          advance(LEASE_MS + 1);
          const [first, ...others] = await stores.runs.claimAbandoned(100);
          if (!first) throw new Error("It was not taken over.");
          expect(others).toEqual([]);
          expect(first).toMatchObject({ deaths: 2, run: { attempt: 3 } });
          ids.delete(first.run.id);
          advance(LEASE_MS - 1);
          expect(await stores.runs.claimAbandoned(100, [], 0)).toEqual([]);
          // Runs that never died begin meanwhile.
          const news = newRun("new");
          await stores.runs.enqueue(ADA, news, "reject");
          expect(await stores.runs.claimAbandoned(100, [], 0)).toMatchObject([{ run: { id: news.id } }]);
          await stores.events.append(first.lease, [done()]);
          for (const _ of upTo(2)) {
            advance(LEASE_MS / 4);
            const [next, ...more] = await stores.runs.claimAbandoned(100);
            if (!next) throw new Error("It was not taken over.");
            expect(more).toEqual([]);
            expect(next).toMatchObject({ deaths: 2, run: { attempt: 3 } });
            expect(ids.delete(next.run.id)).toBe(true);
            await stores.events.append(next.lease, [done()]);
          }
        }));

      rule("and survived for long after that do not count that death, until the eleventh attempt", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { run } = await claimed(stores, "t");
          const deaths: unknown[] = [];
          for (let attempt = 2; attempt <= 15; attempt++) {
            advance(LEASE_MS + 1);
            const [claim] = await stores.runs.claimAbandoned(100);
            if (!claim) break;
            deaths.push(claim.deaths);
            await stores.runs.acquit(claim.lease);
          }
          expect(deaths).toEqual([...Array(9).fill(1), 1, 2, 3, 4]);
          expect(await stores.runs.get(ADA, "t", run.id)).toMatchObject({
            error: { code: "crashed_too_often", details: { attempts: 5 } },
          });
        }),
      );

      rule("and was only suspended do not count as dead once it returns", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { lease, run } = await claimed(stores, "t");
          const leases = [lease];
          await stores.runs.excuse(lease);
          for (const attempt of [2, 3, 4, 5]) {
            advance(LEASE_MS + 1);
            const [claim] = await stores.runs.claimAbandoned(100);
            if (!claim) throw new Error("It was not taken over.");
            expect(claim).toMatchObject({ run: { id: run.id, attempt } });
            // The last attempt has not said so yet.
            expect(claim.deaths).toBe(1);
            for (const each of [leases.pop(), claim.lease]) if (each) await stores.runs.excuse(each);
            leases.push(claim.lease);
          }
          for (const deaths of [1, 2]) {
            advance(LEASE_MS + 1);
            const [claim] = await stores.runs.claimAbandoned(100);
            expect(claim?.deaths).toBe(deaths);
            leases.push(claim?.lease ?? lease);
          }
          const last = leases.at(-1) ?? lease;
          await stores.events.append(last, [done()]);
          await stores.runs.excuse(lease);
          expect(await stores.runs.get(ADA, "t", run.id)).toMatchObject({ status: "success", attempt: 7 });
        }),
      );

      rule("have no effect on a waiting run, which starts when its thread is free", () =>
        inWorld(open, async ({ stores }) => {
          const { lease } = await claimed(stores, "t");
          const [a, b] = [newRun("t"), newRun("t")];
          for (const run of [a, b]) await stores.runs.start(ADA, run, "queue");
          expect(await stores.runs.claimAbandoned(100)).toEqual([]);
          // The process that ended this run died before it took the next.
          await stores.events.append(lease, [failure("x")]);
          const claims = await stores.runs.claimAbandoned(100);
          expect(claims.map(({ run: { id, attempt } }) => [id, attempt])).toEqual([[a.id, 1]]);
        }),
      );
    });
  });
}
