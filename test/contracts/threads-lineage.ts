// What every ThreadStore promises of threads that work for others, and of values that are to be forgotten.

import { describe, expect, test } from "vitest";
import type { Thread } from "../../src/agent/core/records.ts";
import type { NewThread } from "../../src/agent/core/stores.ts";
import {
  ADA,
  BOB,
  claimed,
  done,
  inWorld,
  message,
  newRun,
  type Open,
  patch,
  ruleTest,
  state,
} from "../engine/stores/fixture.ts";

const parentOf = (thread_id: string, background = false): NonNullable<Thread["parent"]> => ({
  ...{ thread_id, run_id: "run_1", call_id: "call_1", background },
});
const child = (id: string, of: string, more: Partial<NewThread> = {}): NewThread => ({
  ...{ id, metadata: {}, parent: parentOf(of), ...more },
});

export function lineageContract(open: Open): void {
  const rule = ruleTest(open);
  describe("threads that work for others", () => {
    test("do not count as waiting for an answer unless their parent does not wait with them", () =>
      inWorld(open, async ({ stores }) => {
        const { threads, events } = stores;
        // Redis counts none.
        if (!threads.interrupted) return;
        const asks = async (thread: string, owner = ADA) =>
          events.append((await claimed(stores, thread, { owner })).lease, [done("interrupted")]);
        const parent = '"background":true';
        await threads.create(ADA, child("waited-for", parent));
        await threads.create(ADA, child("alone", parent, { parent: parentOf(parent, true) }));
        expect(await threads.interrupted()).toBe(0);
        await asks("waited-for");
        expect(await threads.interrupted()).toBe(0);
        await asks("alone");
        await asks("t");
        await asks("t", BOB);
        expect(await threads.interrupted()).toBe(3);
        const { lease } = await claimed(stores, "t");
        expect(await threads.interrupted()).toBe(2);
        await events.append(lease, [done()]);
        await threads.delete(BOB, "t");
        expect(await threads.interrupted()).toBe(1);
      }));

    rule("name the call they work for, through all changes", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        const parent = parentOf("p", true);
        const created = await threads.create(ADA, { id: "c", metadata: {}, parent });
        expect(created).toMatchObject({ parent });
        expect(await threads.get(ADA, "c")).toEqual(created);
        const { lease } = await claimed(stores, "c");
        await stores.events.append(lease, [message("x"), done()]);
        expect(await threads.update(ADA, "c", { title: "Child" })).toMatchObject({ parent });
        await threads.clear(ADA, "c");
        expect(await threads.get(ADA, "c")).toMatchObject({ parent, title: "Child" });
        expect((await threads.list(ADA, { limit: 10, parent: "p" })).items).toMatchObject([{ parent }]);
        // A thread that a run has made has no parent.
        await claimed(stores, "t");
        expect(await threads.get(ADA, "t")).not.toHaveProperty("parent");
      }),
    );

    test("are listed on request", () =>
      inWorld(open, async ({ stores }) => {
        const { threads } = stores;
        for (const id of ["p", "q"]) await threads.create(ADA, { id, metadata: {} });
        for (const [id, of] of [
          ...[["c", "p"] as const, ["d", "p"] as const, ["e", "q"] as const],
          ...[["grandchild", "c"] as const, ["orphan", "gone"] as const],
        ])
          await threads.create(ADA, child(id, of, { title: `${id} plan` }));
        await claimed(stores, "d", { agent: "coder" });
        const find = async (query: object) =>
          (await threads.list(ADA, { limit: 20, ...query })).items.map(({ id }) => id).sort();
        expect(await find({})).toEqual(["p", "q"]);
        expect(await find({ parent: "p" })).toEqual(["c", "d"]);
        expect(await find({ parent: "p", children: true })).toEqual(["c", "d"]);
        expect(await find({ parent: "c" })).toEqual(["grandchild"]);
        expect(await find({ parent: "gone" })).toEqual(["orphan"]);
        expect(await find({ parent: "unknown" })).toEqual([]);
        expect(await find({ children: true })).toEqual(["c", "d", "e", "grandchild", "orphan", "p", "q"]);
        expect(await find({ parent: "p", agent: "coder" })).toEqual(["d"]);
        expect(await find({ parent: "p", status: "idle" })).toEqual(["c"]);
        expect(await find({ q: "plan" })).toEqual([]);
        expect(await find({ q: "GRAND", children: true })).toEqual(["grandchild"]);
        await threads.create(ADA, { id: "gone", metadata: {} });
        await stores.threads.delete(ADA, "q");
        expect(await find({})).toEqual(["gone", "p"]);
        expect(await find({ parent: "q" })).toEqual(["e"]);
      }));
  });

  if (open.rules)
    describe("values to be removed", () => {
      test("are removed, and nothing else is", () =>
        inWorld(open, async ({ stores, advance }) => {
          const { threads } = stores;
          const { lease } = await claimed(stores, "t");
          await stores.events.append(lease, [
            ...[message("x"), state("todos", ["a"]), patch("files", { "a.txt": 1 }), state("__proto__", 1)],
            ...[state("kept", { a: 1 }), done("interrupted")],
          ]);
          advance(1000);
          const forget = ["todos", "files", "__proto__", "nothing"];
          expect(await threads.update(ADA, "t", { title: "Lighter", forget })).toMatchObject({
            ...{ title: "Lighter", status: "interrupted", message_count: 1 },
            updated_at: "2026-11-21T10:00:01.000Z",
          });
          expect(await threads.state(ADA, "t")).toEqual({ kept: { a: 1 } });
          expect(await threads.messages(ADA, "t")).toHaveLength(1);
          const next = await claimed(stores, "t");
          await stores.events.append(next.lease, [patch("files", { "b.txt": 2 })]);
          expect(await threads.state(ADA, "t")).toEqual({ kept: { a: 1 }, files: { "b.txt": 2 } });
          expect(await threads.update(ADA, "unknown", { forget: ["a"] })).toBeUndefined();
          expect(await threads.get(ADA, "unknown")).toBeUndefined();
        }));

      test("are kept, like everything in that change, while a run is active or waiting", () =>
        inWorld(open, async ({ stores }) => {
          const { threads, events } = stores;
          const { lease, run } = await claimed(stores, "t");
          await events.append(lease, [state("todos", ["a"])]);
          const waiting = newRun("t");
          await stores.runs.start(ADA, waiting, "queue");
          const change = { title: "Lighter", metadata: { a: 1 }, forget: ["todos"] };
          for (const run_id of [run.id, waiting.id]) {
            const before = await threads.get(ADA, "t");
            await expect(threads.update(ADA, "t", change)).rejects.toMatchObject({
              ...{ code: "thread_busy", details: { run_id } },
            });
            expect(await threads.get(ADA, "t")).toEqual(before);
            expect(await threads.state(ADA, "t")).toEqual({ todos: ["a"] });
            if (run_id === run.id) await events.append(lease, [done()]);
          }
          const next = await stores.runs.claimNext(ADA, "t");
          expect(await threads.update(ADA, "t", { title: "Busy" })).toMatchObject({ title: "Busy" });
          if (next) await events.append(next.lease, [done()]);
          expect(await threads.update(ADA, "t", change)).toMatchObject({ title: "Lighter" });
          expect(await threads.state(ADA, "t")).toEqual({});
          expect(await threads.get(BOB, "t")).toBeUndefined();
        }));
    });
}
