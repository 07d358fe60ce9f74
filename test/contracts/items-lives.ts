// What every ItemStore promises of how long items stay: with their thread, or for an agent's user until they are deleted.

import { describe, expect, test } from "vitest";
import { MAX_ITEMS, type Shelf } from "../../src/agent/core/items.ts";
import {
  ADA,
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

const GONE = { code: "not_found" };
const NOTES: Shelf = { owner: ADA, of: { thread: "t" }, kind: "notes" };
const TASKS: Shelf = { ...NOTES, kind: "tasks" };

export function itemLivesContract(open: Open): void {
  const rule = ruleTest(open);
  describe("a thread's items", () => {
    rule("require a thread", () =>
      inWorld(open, async ({ stores: { items, threads } }) => {
        for (const version of [undefined, 0, 1]) {
          const item = { key: "k", value: 1, ...(version === undefined ? {} : { version }) };
          await expect(items.put(NOTES, item)).rejects.toMatchObject(GONE);
        }
        expect(await items.get(NOTES, "k")).toBeUndefined();
        expect(await items.list(NOTES)).toEqual([]);
        expect(await items.delete(NOTES, "k")).toBe(false);
        expect(await threads.get(ADA, "t")).toBeUndefined();
      }),
    );

    rule("are written whether or not a run is active, and change nothing else in the thread", () =>
      inWorld(open, async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "t");
        const before = await stores.threads.get(ADA, "t");
        advance(1000);
        await stores.items.put(NOTES, { key: "k", value: 1 });
        await stores.items.put(NOTES, { key: "k", value: 2 });
        await stores.items.put(NOTES, { key: "gone", value: 3 });
        await stores.items.delete(NOTES, "gone");
        expect(await stores.threads.get(ADA, "t")).toEqual(before);
        expect(await stores.threads.state(ADA, "t")).toEqual({});
        await stores.events.append(lease, [message("x"), state("k", "slot"), done()]);
        expect(await stores.items.put(NOTES, { key: "k", value: 3 })).toMatchObject({ version: 3 });
        expect(await stores.threads.state(ADA, "t")).toEqual({ k: "slot" });
      }),
    );

    test("are deleted with it, and do not return with a new thread of its name", () =>
      inWorld(open, async ({ stores: { items, threads } }) => {
        await threads.create(ADA, { id: "t", metadata: {} });
        for (const shelf of [NOTES, TASKS]) await items.put(shelf, { key: "k", value: "old" });
        await threads.delete(ADA, "t");
        for (const shelf of [NOTES, TASKS]) {
          expect(await items.list(shelf)).toEqual([]);
          await expect(items.put(shelf, { key: "k", value: "late", version: 1 })).rejects.toMatchObject(GONE);
        }
        await threads.create(ADA, { id: "t", metadata: {} });
        for (const shelf of [NOTES, TASKS]) {
          expect(await items.list(shelf)).toEqual([]);
          expect(await items.put(shelf, { key: "k", value: "late", version: 1 })).toBeUndefined();
          expect(await items.put(shelf, { key: "k", value: "new" })).toMatchObject({ version: 1 });
        }
      }));

    test("are deleted when it is cleared", () =>
      inWorld(open, async ({ stores: { items, threads } }) => {
        await threads.create(ADA, { id: "t", metadata: {} });
        for (const shelf of [NOTES, TASKS])
          await Promise.all(upTo(MAX_ITEMS).map((n) => items.put(shelf, { key: `${n}`, value: "old" })));
        await threads.clear(ADA, "t");
        for (const shelf of [NOTES, TASKS]) {
          expect(await items.list(shelf)).toEqual([]);
          expect(await items.put(shelf, { key: "1", value: "new", version: 0 })).toMatchObject({
            version: 1,
          });
        }
      }));

    rule("are kept when it is rewound to an earlier message", () =>
      inWorld(open, async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        const event = message("one");
        await stores.events.append(lease, [event, done()]);
        const kept = await stores.items.put(NOTES, { key: "k", value: 1 });
        const rewind_to = event.data.message.id;
        await stores.runs.start(ADA, newRun("t", { rewind_to }), "reject");
        expect(await stores.items.list(NOTES)).toEqual([kept]);
      }),
    );

    test("are either written before a simultaneous deletion or not at all", () =>
      inWorld(open, async ({ stores: { items, threads } }) => {
        for (let round = 0; round < 5; round++) {
          await threads.create(ADA, { id: "t", metadata: {} });
          const put = (n: number) => items.put(NOTES, { key: `${n}`, value: n });
          const [before, after] = [upTo(5), upTo(10, 6)];
          const puts = before.map(put);
          const deleted = threads.delete(ADA, "t");
          const results = await Promise.allSettled([...puts, ...after.map(put)]);
          expect(await deleted).toBe(true);
          for (const result of results)
            if (result.status === "rejected") expect(result.reason).toMatchObject(GONE);
          expect(await items.list(NOTES)).toEqual([]);
          expect(await threads.get(ADA, "t")).toBeUndefined();
          await threads.create(ADA, { id: "t", metadata: {} });
          expect(await items.list(NOTES)).toEqual([]);
          await threads.delete(ADA, "t");
        }
      }));
  });

  rule("items that a user keeps with an agent need no thread, and are kept when threads are deleted", () =>
    inWorld(open, async ({ stores, advance }) => {
      const settings: Shelf = { owner: ADA, of: { agent: "helper" }, kind: "settings" };
      const kept = await stores.items.put(settings, { key: "k", value: "mine" });
      const { lease } = await claimed(stores, "t");
      await stores.events.append(lease, [message("x"), done()]);
      await stores.threads.clear(ADA, "t");
      await stores.threads.delete(ADA, "t");
      advance(30 * 24 * 3_600_000);
      expect(await stores.items.list(settings)).toEqual([kept]);
    }),
  );
}
