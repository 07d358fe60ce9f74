// What every RunStore promises of runs that begin again from an earlier message.

import { describe, expect, test } from "vitest";
import type { Lease, NewRun, StartResult, Stores } from "../../src/agent/core/stores.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import {
  ADA,
  claimed,
  done,
  inWorld,
  message,
  newRun,
  type Open,
  readAll,
  ruleTest,
  said,
  state,
  upTo,
} from "../engine/stores/fixture.ts";
import { keyOf, newCall, reply } from "../engine/stores/fixture-calls.ts";

const HOWS = ["start", "enqueue"] as const;
type How = (typeof HOWS)[number];

/** A thread whose only run has ended with so many messages; returns their ids. */
async function told(stores: Stores, count: number, { thread = "t", owner = ADA as Owner } = {}) {
  const { lease } = await claimed(stores, thread, { owner });
  const events = upTo(count).map((n) => message(`${n}`));
  await stores.events.append(lease, [...events, state("todos", ["kept"]), done("interrupted")]);
  return events.map(({ data }) => data.message.id);
}

/** The lease of a run that was accepted just now. */
async function taken({ runs }: Stores, result: StartResult): Promise<Lease> {
  const claim = result.outcome === "claimed" ? result.claim : await runs.claimNext(ADA, "t");
  if (!claim) throw new Error("It was not taken.");
  return claim.lease;
}

const idsIn = async ({ threads }: Stores, owner = ADA) =>
  (await threads.messages(owner, "t")).map(({ id }) => id);

/** All that a refused run must leave as it is. */
async function look(stores: Stores, owner = ADA) {
  const { threads, runs } = stores;
  return {
    thread: await threads.get(owner, "t"),
    messages: await threads.messages(owner, "t"),
    state: await threads.state(owner, "t"),
    runs: (await runs.list(owner, "t", { limit: 100 })).items,
  };
}

export function rewindContract(open: Open): void {
  const rule = ruleTest(open);
  describe.each(open.rules ? HOWS : HOWS.slice(0, 1))("runs that rewind to a message, by %s,", (how: How) => {
    const begin = ({ runs }: Stores, more: Partial<NewRun>, owner = ADA) =>
      runs[how](owner, newRun("t", more), "reject");
    const accepted = how === "start" ? "claimed" : "queued";

    test("delete it and all later messages, and keep the others", () =>
      inWorld(open, async ({ stores, advance }) => {
        const ids = await told(stores, 6);
        const before = await look(stores);
        advance(1000);
        expect(await begin(stores, { rewind_to: ids[3] ?? "" })).toMatchObject({ outcome: accepted });
        expect(await idsIn(stores)).toEqual(ids.slice(0, 3));
        expect(await stores.threads.get(ADA, "t")).toMatchObject({
          ...{ status: "busy", message_count: 3, updated_at: "2026-11-21T10:00:01.000Z" },
        });
        expect(await stores.threads.state(ADA, "t")).toEqual({ todos: ["kept"] });
        await expect(stores.threads.messages(ADA, "t", { after: ids[3] ?? "" })).rejects.toMatchObject({
          code: "not_found",
        });
        // What was said stays in the log of the run that said it, and the run where it was.
        const [run] = before.runs;
        expect(await stores.runs.get(ADA, "t", run?.id ?? "")).toEqual(run);
        const key = { owner: ADA, thread_id: "t", run_id: run?.id ?? "" };
        expect(await readAll(stores, key)).toHaveLength(8);
      }));

    rule("that have kept a copy up to a message are refused if the thread has a newer one", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await told(stores, 4);
        const [first = "", second = "", , fourth = ""] = ids;
        for (const kept_to of [second, "msg_unknown", ""])
          await expect(begin(stores, { rewind_to: first, kept_to })).rejects.toMatchObject({
            code: "thread_busy",
          });
        expect(await idsIn(stores)).toEqual(ids);
        await taken(stores, await begin(stores, { rewind_to: second, kept_to: fourth })).then((lease) =>
          stores.events.append(lease, [done()]),
        );
        await expect(begin(stores, { rewind_to: first, kept_to: fourth })).rejects.toMatchObject({
          code: "thread_busy",
        });
        expect(await begin(stores, { rewind_to: first, kept_to: first })).toMatchObject({
          outcome: accepted,
        });
        expect(await idsIn(stores)).toEqual([]);
      }),
    );

    rule("continue from there, even with a deleted message", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await told(stores, 4);
        const [, second] = await stores.threads.messages(ADA, "t");
        if (second?.role !== "user") throw new Error("There is nothing to continue from.");
        const lease = await taken(stores, await begin(stores, { rewind_to: second.id }));
        const more = message("more");
        await stores.events.append(lease, [said(second), more, done()]);
        expect(await idsIn(stores)).toEqual([ids[0], ids[1], more.data.message.id]);
        expect(await stores.threads.messages(ADA, "t", { after: ids[1] ?? "" })).toHaveLength(1);
        expect((await stores.threads.get(ADA, "t"))?.message_count).toBe(3);
      }),
    );

    rule("no longer wait for a deleted call, whose id can be reused", () =>
      inWorld(open, async ({ stores }) => {
        const [first = ""] = await told(stores, 2);
        const call = newCall("call_1");
        await stores.deferredCalls.open(call);
        await stores.deferredCalls.accept(keyOf(call));
        await expect(begin(stores, { rewind_to: "msg_unknown" })).rejects.toThrow();
        expect(await stores.deferredCalls.get(keyOf(call))).toMatchObject({ state: "accepted" });
        await begin(stores, { rewind_to: first });
        expect(await stores.deferredCalls.get(keyOf(call))).toBeUndefined();
        expect(await stores.deferredCalls.deliver(call.token_hash, reply("late"))).toBeUndefined();
      }),
    );

    rule("keep the thread's abandoned calls, with results that have arrived", () =>
      inWorld(open, async ({ stores: { deferredCalls: calls, ...stores } }) => {
        const [, second = ""] = await told({ ...stores, deferredCalls: calls }, 2);
        const [left, late, delivered] = [newCall("left"), newCall("late"), newCall("delivered")];
        for (const call of [left, late, delivered]) await calls.open(call);
        for (const call of [left, late]) await calls.leave(keyOf(call));
        for (const call of [late, delivered]) await calls.deliver(call.token_hash, reply(call.call_id));
        await begin({ ...stores, deferredCalls: calls }, { rewind_to: second });
        expect(await calls.get(keyOf(late))).toEqual({ ...late, state: "late", reply: reply("late") });
        expect(await calls.deliver(left.token_hash, reply(1))).toMatchObject({ state: "late" });
        expect(await calls.get(keyOf(delivered))).toBeUndefined();
      }),
    );

    rule("are refused if the message does not exist, and change nothing", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await told(stores, 3);
        const elsewhere = await told(stores, 2, { thread: "u" });
        await claimed(stores, "t", { rewind_to: ids[2] ?? "" }).then(({ lease }) =>
          stores.events.append(lease, [done()]),
        );
        const before = await look(stores);
        for (const rewind_to of ["msg_unknown", "", "__proto__", elsewhere[0] ?? "", ids[2] ?? ""])
          for (const whenBusy of ["reject", "queue", "front"] as const)
            await expect(stores.runs[how](ADA, newRun("t", { rewind_to }), whenBusy)).rejects.toMatchObject({
              ...{ code: "invalid_request", message: expect.stringContaining(`\`${rewind_to}\``) },
            });
        expect(await look(stores)).toEqual(before);
        await expect(
          stores.runs[how](ADA, newRun("unknown", { rewind_to: ids[0] ?? "" }), "reject"),
        ).rejects.toMatchObject({ code: "invalid_request" });
        expect(await stores.threads.get(ADA, "unknown")).toBeUndefined();
        expect(await stores.runs.claimAbandoned(10)).toEqual([]);
      }),
    );

    rule("do not wait: a busy thread refuses them, whether its run is active or waiting", () =>
      inWorld(open, async ({ stores }) => {
        const [first = ""] = await told(stores, 2);
        const { lease, run } = await claimed(stores, "t");
        const waiting = newRun("t");
        await stores.runs.start(ADA, waiting, "queue");
        for (const run_id of [run.id, waiting.id]) {
          const before = await look(stores);
          for (const whenBusy of ["reject", "queue", "front"] as const)
            await expect(
              stores.runs[how](ADA, newRun("t", { rewind_to: first }), whenBusy),
            ).rejects.toMatchObject({ code: "thread_busy", details: { run_id } });
          expect(await look(stores)).toEqual(before);
          if (run_id === run.id) await stores.events.append(lease, [done()]);
        }
        await stores.runs.requestStop(ADA, "t", waiting.id, "cancel");
        expect(await begin(stores, { rewind_to: first })).toMatchObject({ outcome: accepted });
      }),
    );

    rule("delete nothing a second time, because a repeated request returns the existing run", () =>
      inWorld(open, async ({ stores }) => {
        const [first = "", second = ""] = await told(stores, 3);
        const news = { rewind_to: second, idempotency_key: "k" };
        const results = await Promise.all(upTo(10).map(() => begin(stores, news)));
        const others = results.filter(({ outcome }) => outcome === "known");
        expect(others).toHaveLength(9);
        const [run] = (await look(stores)).runs;
        for (const known of others) expect(known).toMatchObject({ run: { id: run?.id } });
        expect(await idsIn(stores)).toEqual([first]);

        const one = results.find(({ outcome }) => outcome !== "known");
        if (one) await stores.events.append(await taken(stores, one), [message("new"), done()]);
        const before = await look(stores);
        for (const rewind_to of [second, first, "msg_unknown"])
          expect(await begin(stores, { ...news, rewind_to })).toMatchObject({
            ...{ outcome: "known", run: { id: run?.id, status: "success" } },
          });
        expect(await look(stores)).toEqual(before);
      }),
    );

    test("succeed for only one of several simultaneous starts, and only that one deletes anything", () =>
      inWorld(open, async ({ stores }) => {
        const ids = await told(stores, 12);
        const news = ids.flatMap((rewind_to) => [newRun("t", { rewind_to }), newRun("t")]);
        const results = await Promise.allSettled(news.map((run) => stores.runs[how](ADA, run, "reject")));
        const won = results.flatMap(({ status }, n) => (status === "fulfilled" ? [news[n]] : []));
        for (const result of results)
          if (result.status === "rejected")
            expect(result.reason).toMatchObject({ code: "thread_busy", details: { run_id: won[0]?.id } });
        expect(won).toHaveLength(1);
        const to = won[0]?.rewind_to;
        expect(await idsIn(stores)).toEqual(to === undefined ? ids : ids.slice(0, ids.indexOf(to)));
        expect((await look(stores)).runs).toHaveLength(2);
      }));

    test("report a thread that is deleted or cleared meanwhile as missing, or prevent that", () =>
      inWorld(open, async ({ stores }) => {
        for (const remove of ["delete", "clear"] as const)
          for (const isFirst of [true, false]) {
            const [first = ""] = await told(stores, 3);
            const removing = isFirst ? stores.threads[remove](ADA, "t") : undefined;
            const beginning = begin(stores, { rewind_to: first });
            const [begun, removed] = await Promise.allSettled([
              beginning,
              removing ?? stores.threads[remove](ADA, "t"),
            ]);
            const faults = [begun, removed].flatMap((each) =>
              each.status === "rejected" ? [each.reason.code] : [],
            );
            expect([["invalid_request"], ["thread_busy"]]).toContainEqual(faults);
            expect(await stores.threads.messages(ADA, "t")).toEqual([]);
            if (begun.status === "fulfilled")
              await stores.events.append(await taken(stores, begun.value), [done()]);
            expect(await stores.runs.claimNext(ADA, "t")).toBeUndefined();
            await stores.threads.delete(ADA, "t");
          }
      }));
  });
}
