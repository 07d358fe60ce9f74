import { describe, expect, test } from "vitest";
import { MAX_ITEMS, type Shelf } from "../../../src/agent/core/items.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import { createMemoryStores, type MemoryStoreOptions } from "../../../src/engine/stores/memory/index.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { ADA, BOB, claimed, done, inWorld, message, type Open, state, upTo } from "./fixture.ts";

const KB = 1024;
const LONG = "x".repeat(10 * KB);

const memory = (more: MemoryStoreOptions): Open => {
  return async (options) => createMemoryStores({ ...options, ...more });
};
const notesOf = (thread: string): Shelf => ({ owner: ADA, of: { thread }, kind: "notes" });
const agentOf = (agent: string): Shelf => ({ owner: ADA, of: { agent }, kind: "notes" });

describe("the memory for threads", () => {
  test("is used by items, and freed when they are changed or deleted", () =>
    inWorld(memory({ maxBytes: 200 * KB }), async ({ stores: { threads, items }, stores }) => {
      // Were anything kept, this thread would be the first to go.
      await threads.create(BOB, { id: "witness", metadata: {} });
      const put = async (...values: string[]) => {
        for (const value of values)
          for (const key of ["a", "b"]) await items.put(notesOf("t"), { key, value });
      };
      for (let n = 0; n < 20; n++) {
        await threads.create(ADA, { id: "t", metadata: {} });
        await put(LONG);
        await threads.delete(ADA, "t");
      }
      await threads.create(ADA, { id: "t", metadata: {} });
      for (let n = 0; n < 20; n++) {
        await put(LONG, LONG, "short", LONG);
        for (const key of ["a", "b"]) await items.delete(notesOf("t"), key);
        await put(LONG);
        await threads.clear(ADA, "t");
      }
      expect(await threads.get(BOB, "witness")).toBeDefined();

      await claimed(stores, "busy");
      const flood = async () => {
        for (let n = 0; ; n++) await items.put(notesOf("busy"), { key: `${n}`, value: LONG });
      };
      await expect(flood()).rejects.toMatchObject({ code: "unavailable" });
      expect((await items.list(notesOf("busy"))).length).toBeLessThanOrEqual(20);
    }));

  test("includes items even while their thread is compressed", () =>
    inWorld(memory({ maxBytes: 200 * KB, uncompressedBytes: 0 }), async ({ stores: { threads, items } }) => {
      for (const n of upTo(50)) {
        await threads.create(ADA, { id: `t${n}`, metadata: {} });
        await items.put(notesOf(`t${n}`), { key: "k", value: LONG });
      }
      const left = (await threads.list(ADA, { limit: 100 })).items;
      expect(left.length).toBeGreaterThan(10);
      expect(left.length).toBeLessThan(20);
      for (const { id } of left) expect(await items.list(notesOf(id))).toHaveLength(1);
    }));

  test("is used by threads' initial messages, and freed by rewinding and expiry", () =>
    inWorld(memory({ maxBytes: 200 * KB, eventRetentionMs: 0 }), async ({ stores: { threads }, stores }) => {
      await threads.create(BOB, { id: "witness", metadata: {} });
      const messages = upTo(3).map(() => userMessage(LONG));
      await threads.create(ADA, { id: "t", metadata: {}, messages, state: { a: LONG } });
      let rewind_to = messages[1]?.id ?? "";
      for (let n = 0; n < 50; n++) {
        const { lease } = await claimed(stores, "t", { id: `run_${n}`, rewind_to });
        const told = [message(LONG), message(LONG)];
        rewind_to = told[0]?.data.message.id ?? "";
        await stores.events.append(lease, [...told, state("a", LONG), state("b", LONG), done()]);
        await threads.update(ADA, "t", { forget: ["a", "b"] });
        expect(await stores.events.bounds(lease)).toEqual({ first: 0, last: 0 });
      }
      expect(await threads.get(BOB, "witness")).toBeDefined();
      for (const n of upTo(30))
        await threads.create(ADA, { id: `t${n}`, metadata: {}, messages: [userMessage(LONG)] });
      expect(await threads.get(BOB, "witness")).toBeUndefined();
      expect((await threads.list(ADA, { limit: 100 })).items.length).toBeLessThan(20);
    }));
});

describe("items that users keep with agents in memory", () => {
  test("are limited to ten thousand shelves; one more evicts the least recently used one", () =>
    inWorld(memory({}), async ({ stores: { items } }) => {
      const put = (n: number) => items.put(agentOf(`${n}`), { key: "k", value: n });
      for (const n of upTo(10_000)) await put(n);
      await items.get(agentOf("1"), "k");
      await items.list(agentOf("2"));
      await items.put(agentOf("3"), { key: "k", value: "used", version: 1 });
      await put(10_001);
      expect(await items.get(agentOf("4"), "k")).toBeUndefined();
      for (const n of [1, 2, 3, 5, 10_001]) expect(await items.get(agentOf(`${n}`), "k")).toBeDefined();
      // An empty one takes no place.
      await items.delete(agentOf("10"), "k");
      await put(10_002);
      expect(await items.get(agentOf("6"), "k")).toBeDefined();
      expect(await put(4)).toMatchObject({ version: 1 });
    }));

  test("have a common size limit, and use no memory of threads", () =>
    inWorld(memory({ maxBytes: 100 * KB }), async ({ stores: { items, threads } }) => {
      await threads.create(BOB, { id: "witness", metadata: {} });
      const value = "x".repeat(60 * KB);
      const fill = (agent: string) =>
        Promise.all(upTo(MAX_ITEMS).map((n) => items.put(agentOf(agent), { key: `${n}`, value })));
      for (const agent of ["a", "b", "c", "d"]) await fill(agent);
      for (const agent of ["a", "b", "c", "d"])
        expect(await items.list(agentOf(agent))).toHaveLength(MAX_ITEMS);
      await fill("a");
      await fill("e");
      expect(await items.list(agentOf("b"))).toEqual([]);
      for (const agent of ["a", "c", "d", "e"])
        expect(await items.list(agentOf(agent))).toHaveLength(MAX_ITEMS);
      expect(await threads.get(BOB, "witness")).toBeDefined();
    }));
});

describe("tenants that share the memory", () => {
  const other: Owner = { tenant: "other", user: "eve" };

  test("lose no thread to one that floods it, not even a thread that waits for an answer", () =>
    inWorld(memory({ maxBytes: 200 * KB }), async ({ stores: { threads, items }, stores }) => {
      for (const n of upTo(3)) await threads.create(other, { id: `t${n}`, metadata: {} });
      const { lease } = await claimed(stores, "asks", { owner: other });
      await stores.events.append(lease, [done("interrupted")]);
      for (const n of upTo(60)) {
        await threads.create(ADA, { id: `t${n}`, metadata: {} });
        await items.put(notesOf(`t${n}`), { key: "k", value: LONG });
      }
      expect((await threads.list(other, { limit: 10 })).items).toHaveLength(4);
      const left = (await threads.list(ADA, { limit: 100 })).items;
      expect(left.length).toBeGreaterThan(10);
      expect(left.length).toBeLessThan(20);
      // The newest are there.
      expect(left.some(({ id }) => id === "t60")).toBe(true);
    }));

  test("are refused if all their data is in use, before another tenant loses anything", () =>
    inWorld(memory({ maxBytes: 200 * KB }), async ({ stores: { threads, items }, stores }) => {
      await threads.create(other, { id: "t", metadata: {} });
      await claimed(stores, "busy");
      const flood = async () => {
        for (let n = 0; ; n++) await items.put(notesOf("busy"), { key: `${n}`, value: LONG });
      };
      await expect(flood()).rejects.toMatchObject({
        code: "limit_exceeded",
        details: { limit: "retention.memory_bytes", of: "tenant" },
      });
      expect(await threads.get(other, "t")).toBeDefined();
    }));

  test("get memory from the tenant that has most if they have little", () =>
    inWorld(memory({ maxBytes: 200 * KB }), async ({ stores: { threads, items } }) => {
      for (const n of upTo(30)) {
        await threads.create(ADA, { id: `t${n}`, metadata: {} });
        await items.put(notesOf(`t${n}`), { key: "k", value: LONG });
      }
      const before = (await threads.list(ADA, { limit: 100 })).items.length;
      for (const n of upTo(4)) {
        await threads.create(other, { id: `t${n}`, metadata: {} });
        await items.put({ owner: other, of: { thread: `t${n}` }, kind: "notes" }, { key: "k", value: LONG });
      }
      expect((await threads.list(other, { limit: 10 })).items).toHaveLength(4);
      expect((await threads.list(ADA, { limit: 100 })).items.length).toBeLessThan(before);
    }));

  test("lose none of their agents' items to a tenant that floods them", () =>
    inWorld(memory({}), async ({ stores: { items } }) => {
      const theirs: Shelf = { owner: other, of: { agent: "a" }, kind: "notes" };
      await items.put(theirs, { key: "k", value: "kept" });
      for (const n of upTo(10_010)) await items.put(agentOf(`${n}`), { key: "k", value: "v" });
      expect(await items.get(theirs, "k")).toMatchObject({ value: "kept" });
      expect(await items.get(agentOf("1"), "k")).toBeUndefined();
    }));
});
