// What every ItemStore promises.

import { describe, expect, test } from "vitest";
import {
  type Item,
  type ItemStore,
  MAX_ITEM_BYTES,
  MAX_ITEMS,
  MAX_KEY_CHARS,
  type Shelf,
} from "../../src/agent/core/items.ts";
import type { Stores } from "../../src/agent/core/stores.ts";
import { ADA, inWorld, NEIGHBOURS, type Open, upTo } from "../engine/stores/fixture.ts";

const FULL = { code: "limit_exceeded" };

const onThread: Shelf = { owner: ADA, of: { thread: "t" }, kind: "notes" };
const withAgent: Shelf = { owner: ADA, of: { agent: "t" }, kind: "notes" };

const makeThread = ({ threads }: Stores) => threads.create(ADA, { id: "t", metadata: {} });
const keysOn = async (items: ItemStore, shelf: Shelf) => (await items.list(shelf)).map(({ key }) => key);

export function itemsContract(open: Open): void {
  describe.each([
    ["of a thread", onThread],
    ["of an agent", withAgent],
  ])("items %s", (_, shelf) => {
    test("are written as a whole, one version after another", () =>
      inWorld(open, async ({ stores, advance }) => {
        await makeThread(stores);
        const { items } = stores;
        const first = await items.put(shelf, { key: "plan", value: { a: [1, null], b: "é" } });
        const expected = { key: "plan", value: { a: [1, null], b: "é" }, version: 1 };
        expect(first).toEqual({ ...expected, updated_at: "2026-11-21T10:00:00.000Z" });
        expect(await items.get(shelf, "plan")).toEqual(first);
        advance(1500);
        const second = await items.put(shelf, { key: "plan", value: "short" });
        expect(second).toEqual({
          ...{ key: "plan", value: "short", version: 2, updated_at: "2026-11-21T10:00:01.500Z" },
        });
        expect(await items.get(shelf, "plan")).toEqual(second);
        expect(await items.list(shelf)).toEqual([second]);
        expect(await items.get(shelf, "Plan")).toBeUndefined();
      }));

    test("cannot be overwritten based on another version", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const { items } = stores;
        const put = (value: string, version: number) => items.put(shelf, { key: "k", value, version });
        expect(await put("early", 1)).toBeUndefined();
        expect(await items.get(shelf, "k")).toBeUndefined();
        expect(await put("one", 0)).toMatchObject({ version: 1 });
        for (const version of [0, 2, -1]) expect(await put("wrong", version)).toBeUndefined();
        expect(await put("two", 1)).toMatchObject({ version: 2 });
        expect(await put("late", 1)).toBeUndefined();
        expect(await items.list(shelf)).toMatchObject([{ value: "two", version: 2 }]);
      }));

    test("start again at the first version after they are deleted", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const { items } = stores;
        expect(await items.delete(shelf, "k")).toBe(false);
        for (const value of ["a", "b"]) await items.put(shelf, { key: "k", value });
        await items.put(shelf, { key: "other", value: null });
        const deleted = await Promise.all(upTo(5).map(() => items.delete(shelf, "k")));
        expect(deleted.filter(Boolean)).toHaveLength(1);
        expect(await items.get(shelf, "k")).toBeUndefined();
        expect(await keysOn(items, shelf)).toEqual(["other"]);
        expect(await items.put(shelf, { key: "k", value: "late", version: 2 })).toBeUndefined();
        expect(await items.put(shelf, { key: "k", value: "new", version: 0 })).toMatchObject({ version: 1 });
        for (const key of ["k", "other"]) expect(await items.delete(shelf, key)).toBe(true);
        expect(await items.list(shelf)).toEqual([]);
      }));

    test("are listed by last change, and by key for the same time", () =>
      inWorld(open, async ({ stores, advance }) => {
        await makeThread(stores);
        for (const key of ["b", "a", "B", "10", "9"]) await stores.items.put(shelf, { key, value: key });
        advance(1);
        for (const key of ["d", "c"]) await stores.items.put(shelf, { key, value: key });
        expect(await keysOn(stores.items, shelf)).toEqual(["c", "d", "10", "9", "B", "a", "b"]);
        advance(1);
        await stores.items.put(shelf, { key: "a", value: "again" });
        await stores.items.get(shelf, "b");
        expect(await keysOn(stores.items, shelf)).toEqual(["a", "c", "d", "10", "9", "B", "b"]);
      }));

    test("are stored and returned as copies", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const value = { list: ["one"] };
        const change = (item: Item | undefined) =>
          (item?.value as typeof value | undefined)?.list.push("changed");
        const put = await stores.items.put(shelf, { key: "k", value });
        value.list.push("changed");
        change(put);
        change(await stores.items.get(shelf, "k"));
        change((await stores.items.list(shelf))[0]);
        expect((await stores.items.get(shelf, "k"))?.value).toEqual({ list: ["one"] });
      }));

    test("keep any content in their keys and values", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const value = JSON.parse(
          '{"__proto__":{"a":1},"constructor":null,"text":"\\u0000\\ud800 \\u2028\\n\'\\"","n":1e300}',
        );
        const keys = [
          "",
          " ",
          "__proto__",
          "constructor",
          "a\u0000b",
          "a",
          "a:b",
          "a\nb",
          "é😀",
          "'; --",
          "1 2",
        ];
        for (const key of keys) {
          const item = await stores.items.put(shelf, { key, value });
          expect(item).toMatchObject({ key, version: 1 });
          const kept = await stores.items.get(shelf, key);
          expect(kept).toEqual(item);
          expect(JSON.stringify(kept?.value)).toBe(JSON.stringify(value));
        }
        expect(await keysOn(stores.items, shelf)).toEqual([...keys].sort());
        for (const key of keys) expect(await stores.items.delete(shelf, key)).toBe(true);
        for (const plain of [null, false, 0, "", [], "null"]) {
          expect(await stores.items.put(shelf, { key: "k", value: plain })).toMatchObject({ value: plain });
          expect((await stores.items.get(shelf, "k"))?.value).toEqual(plain);
        }
        expect(({} as { a?: number }).a).toBeUndefined();
      }));

    test("are limited in number per shelf", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const { items } = stores;
        const put = (n: number) => items.put(shelf, { key: `k${n}`, value: n });
        // A store refuses what it cannot begin for seconds: on a busy machine it could not begin all of them.
        for (const n of upTo(MAX_ITEMS - 20)) await put(n);
        const tries = upTo(40).map((n) => put(MAX_ITEMS + n));
        const results = await Promise.allSettled(tries);
        expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(20);
        for (const result of results)
          if (result.status === "rejected") expect(result.reason).toMatchObject(FULL);
        const keys = await keysOn(items, shelf);
        expect(keys).toHaveLength(MAX_ITEMS);
        await expect(items.put(shelf, { key: "x", value: 1 })).rejects.toMatchObject(FULL);
        expect(await items.put(shelf, { key: keys[0] ?? "", value: "changed" })).toMatchObject({
          version: 2,
        });
        expect(await items.put({ ...shelf, kind: "tasks" }, { key: "x", value: 1 })).toBeDefined();
        await items.delete(shelf, keys[1] ?? "");
        expect(await items.put(shelf, { key: "x", value: 1 })).toMatchObject({ version: 1 });
      }));

    test("are limited in size, counted in bytes", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const { items } = stores;
        const largest = "é".repeat(MAX_ITEM_BYTES / 2 - 1);
        const longest = "k".repeat(MAX_KEY_CHARS);
        expect(await items.put(shelf, { key: longest, value: largest })).toMatchObject({ version: 1 });
        expect((await items.get(shelf, longest))?.value).toBe(largest);
        await expect(items.put(shelf, { key: longest, value: `${largest}x` })).rejects.toMatchObject(FULL);
        await expect(items.put(shelf, { key: `${longest}k`, value: 1 })).rejects.toMatchObject(FULL);
        expect(await items.list(shelf)).toMatchObject([{ key: longest, version: 1 }]);
      }));

    test("are separate from those on other shelves", () =>
      inWorld(open, async ({ stores }) => {
        await makeThread(stores);
        const { items, threads } = stores;
        await threads.create(ADA, { id: "u", metadata: {} });
        const kinds = ["notes", "tasks", "reflections", "settings"] as const;
        const places = [{ thread: "t" }, { agent: "t" }, { thread: "u" }, { agent: "u" }];
        const shelves = places.flatMap((of) => kinds.map((kind) => ({ owner: ADA, of, kind })));
        for (const each of shelves) expect(await items.list(each)).toEqual([]);
        for (const [n, each] of shelves.entries())
          expect(await items.put(each, { key: "k", value: n })).toMatchObject({ version: 1 });
        for (const [n, each] of shelves.entries()) {
          expect(await items.list(each)).toMatchObject([{ value: n }]);
          expect(await items.delete(each, "k")).toBe(true);
          expect(await items.delete(each, "k")).toBe(false);
        }
      }));

    test.each(NEIGHBOURS)("belong only to their owner: %s", (_name, owner, neighbour) =>
      inWorld(open, async ({ stores }) => {
        const [own, other] = [owner, neighbour].map((each) => ({ ...shelf, owner: each })) as [Shelf, Shelf];
        await stores.threads.create(owner, { id: "t", metadata: {} });
        const kept = await stores.items.put(own, { key: "k", value: "mine" });
        expect(await stores.items.get(other, "k")).toBeUndefined();
        expect(await stores.items.list(other)).toEqual([]);
        expect(await stores.items.delete(other, "k")).toBe(false);
        const steal = () => stores.items.put(other, { key: "k", value: "stolen" });
        if ("thread" in shelf.of) await expect(steal()).rejects.toMatchObject({ code: "not_found" });
        await stores.threads.create(neighbour, { id: "t", metadata: {} });
        expect(await stores.items.put(other, { key: "k", value: "x", version: 1 })).toBeUndefined();
        expect(await steal()).toMatchObject({ version: 1 });
        await stores.threads.delete(neighbour, "t");
        await stores.items.delete(other, "k");
        expect(await stores.items.list(own)).toEqual([kept]);
      }),
    );
  });
}
