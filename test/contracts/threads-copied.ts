// What every ThreadStore promises of threads that begin as a copy of another one.

import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Stores } from "../../src/agent/core/stores.ts";
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
  state,
  upTo,
} from "../engine/stores/fixture.ts";

/** A page of the copy holds a few of them. */
const LONG = "é".repeat(100_000);

/** An idle thread with so many messages; returns them. */
async function told(stores: Stores, thread: string, count: number) {
  const { lease } = await claimed(stores, thread);
  const events = upTo(count).map((n) => message(`${n}${LONG}`));
  for (const event of events) await stores.events.append(lease, [event]);
  await stores.events.append(lease, [state("todos", ["kept"]), done()]);
  return events.map(({ data }) => data.message);
}

const copy = (id: string) => ({ id, title: "Copy", metadata: { a: 1 }, state: { files: { "a.txt": "x" } } });

export function copiedThreadsContract(open: Open): void {
  const rule = ruleTest(open);
  describe("copied threads", () => {
    test("have the messages up to a given one, and then continue separately", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events } = stores;
        const all = await told(stores, "t", 5);
        const whole = await threads.fork(ADA, "t", copy("whole"));
        expect(whole).toMatchObject({ id: "whole", title: "Copy", status: "idle", message_count: 5 });
        expect(await threads.get(ADA, "whole")).toEqual(whole);
        expect(await threads.messages(ADA, "whole")).toEqual(all);
        expect(await threads.state(ADA, "whole")).toEqual({ files: { "a.txt": "x" } });
        const part = await threads.fork(ADA, "t", copy("part"), all[2]?.id);
        expect(part.message_count).toBe(3);
        expect(whole.forked_from).toEqual({ thread_id: "t", message_id: all[4]?.id });
        expect(part.forked_from).toEqual({ thread_id: "t", message_id: all[2]?.id });
        expect(await threads.get(ADA, "part")).toEqual(part);
        expect((await threads.list(ADA, { limit: 9 })).items).toContainEqual(part);
        expect(await threads.messages(ADA, "part")).toEqual(all.slice(0, 3));

        const more = message("more");
        const { lease } = await claimed(stores, "part", { rewind_to: all[2]?.id ?? "" });
        await events.append(lease, [more, done()]);
        expect(await threads.messages(ADA, "part")).toEqual([...all.slice(0, 2), more.data.message]);
        expect(await threads.messages(ADA, "t")).toEqual(all);
        expect(await threads.delete(ADA, "t")).toBe(true);
        expect(await threads.messages(ADA, "whole")).toEqual(all);
      }));

    rule("can be copies of empty threads", () =>
      inWorld(open, async ({ stores: { threads } }) => {
        await threads.create(ADA, { id: "t", metadata: {} });
        expect(await threads.fork(ADA, "t", copy("c"))).toMatchObject({
          ...{ message_count: 0, forked_from: { thread_id: "t" } },
        });
        expect(await threads.messages(ADA, "c")).toEqual([]);
      }),
    );

    rule(
      "are refused if the message or owner is missing or the thread exists, and leave nothing behind",
      () =>
        inWorld(open, async ({ stores }) => {
          const { threads } = stores;
          const [first] = await told(stores, "t", 2);
          await threads.create(ADA, { id: "taken", metadata: {} });
          const refused = async (code: string, work: Promise<unknown>) =>
            expect(work).rejects.toMatchObject({ code });
          await refused("not_found", threads.fork(ADA, "t", copy("c"), "msg_unknown"));
          await refused("not_found", threads.fork(BOB, "t", copy("c"), first?.id));
          await refused("already_exists", threads.fork(ADA, "t", copy("taken")));
          expect(await threads.get(ADA, "c")).toBeUndefined();
          expect(await threads.get(ADA, "taken")).toMatchObject({ message_count: 0 });
          expect(await threads.messages(ADA, "taken")).toEqual([]);
          expect((await threads.list(ADA, { limit: 10 })).items.map(({ id }) => id).sort()).toEqual([
            "t",
            "taken",
          ]);
        }),
    );

    test("are hidden until they are complete, and only one of several simultaneous copies is created", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const all = await told(stores, "t", 8);
        let isOver = false;
        const copies = Promise.allSettled([1, 2, 3].map(() => threads.fork(ADA, "t", copy("c")))).finally(
          () => {
            isOver = true;
          },
        );
        while (!isOver) {
          const seen = await threads.get(ADA, "c");
          if (seen) expect(seen.message_count).toBe(8);
          const { items } = await threads.list(ADA, { limit: 10 });
          for (const { message_count } of items) expect(message_count).toBe(8);
          await nextTurn();
        }
        const outcomes = await copies;
        expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        for (const outcome of outcomes)
          if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "already_exists" });
        expect(await threads.messages(ADA, "c")).toEqual(all);
      }));

    test("give way to a run that creates a thread with the same id", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, runs, events } = stores;
        await told(stores, "t", 8);
        const refused = expect(threads.fork(ADA, "t", copy("c"))).rejects.toMatchObject({
          code: "already_exists",
        });
        const run = newRun("c");
        const result = await runs.start(ADA, run, "reject");
        await refused;
        if (result.outcome !== "claimed") throw new Error("The run was not claimed.");
        const own = message("own");
        await events.append(result.claim.lease, [own, done()]);
        expect(await threads.messages(ADA, "c")).toEqual([own.data.message]);
      }));

    rule("can return one of their messages by its id", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const [first, second] = await told(stores, "t", 2);
        expect(await threads.message(ADA, "t", second?.id ?? "")).toEqual(second);
        expect(await threads.message(ADA, "t", "msg_unknown")).toBeUndefined();
        expect(await threads.message(BOB, "t", first?.id ?? "")).toBeUndefined();
        expect(await threads.message(ADA, "unknown", first?.id ?? "")).toBeUndefined();
      }),
    );

    rule("can return their last message", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const all = await told(stores, "t", 3);
        expect(await threads.message(ADA, "t")).toEqual(all.at(-1));
        await threads.clear(ADA, "t");
        expect(await threads.message(ADA, "t")).toBeUndefined();
        expect(await threads.message(ADA, "unknown")).toBeUndefined();
        expect(await threads.message(BOB, "t")).toBeUndefined();
      }),
    );
  });
}
