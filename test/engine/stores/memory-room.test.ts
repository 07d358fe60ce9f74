// What threads in memory weigh, which of them go first, and those that are kept compressed.

import { afterEach, describe, expect, test, vi } from "vitest";
import { tokenHash } from "../../../src/agent/core/deferred-calls.ts";
import type { UserMessage } from "../../../src/agent/core/message.ts";
import type { Stores } from "../../../src/agent/core/stores.ts";
import { createMemoryStores, type MemoryStoreOptions } from "../../../src/engine/stores/memory/index.ts";
import {
  ADA,
  BOB,
  claimed,
  delta,
  done,
  failure,
  inWorld,
  keyOf,
  message,
  newRun,
  note,
  type Open,
  patch,
  readAll,
  seqsOf,
  state,
  upTo,
} from "./fixture.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("the memory for threads", () => {
  const KB = 1024;
  const LONG = "x".repeat(10 * KB);
  const small = (maxBytes: number, more: MemoryStoreOptions = {}): Open => {
    return async (options) => createMemoryStores({ ...options, ...more, maxBytes });
  };

  async function fill(stores: Stores, id: string, status: "success" | "interrupted" = "success") {
    const { lease } = await claimed(stores, id);
    await stores.events.append(lease, [message(LONG), done(status)]);
  }
  async function present(stores: Stores) {
    return (await stores.threads.list(ADA, { limit: 100 })).items.map(({ id }) => id).sort();
  }

  test("is shared: the least recently used thread makes room", () =>
    inWorld(small(100 * KB), async ({ stores, advance }) => {
      for (const id of ["a", "b", "c"]) {
        await fill(stores, id);
        advance(1000);
      }
      await stores.threads.get(ADA, "a");
      for (const id of ["d", "e", "f"]) await fill(stores, id);
      expect(await present(stores)).toEqual(expect.arrayContaining(["a", "d", "e", "f"]));
      expect(await present(stores)).not.toContain("b");
      for (let n = 0; n < 100; n++) await fill(stores, `more${n}`);
      expect((await present(stores)).length).toBeLessThan(7);
    }));

  test("covers all owners, and the least recently used data is dropped", () =>
    inWorld(small(100 * KB), async ({ stores }) => {
      await stores.threads.create(BOB, { id: "b", title: LONG, metadata: {} });
      for (let n = 0; n < 10; n++) await fill(stores, `t${n}`);
      expect(await stores.threads.get(BOB, "b")).toBeUndefined();
    }));

  test("keeps threads that wait for an answer longer than idle ones", () =>
    inWorld(small(100 * KB), async ({ stores }) => {
      await fill(stores, "asks", "interrupted");
      for (let n = 0; n < 20; n++) await fill(stores, `t${n}`);
      expect(await present(stores)).toContain("asks");
      for (let n = 0; n < 20; n++) await fill(stores, `asks${n}`, "interrupted");
      expect(await present(stores)).not.toContain("asks");
    }));

  test("is never taken from a thread with an active or waiting run", () =>
    inWorld(small(100 * KB), async ({ stores }) => {
      await fill(stores, "active", "interrupted");
      const active = await claimed(stores, "active");
      await stores.events.append(active.lease, [message(LONG)]);
      const before = await claimed(stores, "waiting");
      await stores.runs.start(ADA, newRun("waiting"), "queue");
      await stores.events.append(before.lease, [message(LONG), done()]);
      for (let n = 0; n < 50; n++) await fill(stores, `t${n}`, n % 2 ? "interrupted" : "success");
      expect(await present(stores)).toEqual(expect.arrayContaining(["active", "waiting"]));
      expect(await stores.threads.messages(ADA, "active")).toHaveLength(2);
      expect(await stores.threads.messages(ADA, "waiting")).toHaveLength(1);
    }));

  test("accepts only the ends of runs if it is full of active ones", () =>
    inWorld(small(100 * KB), async ({ stores }) => {
      const claim = await claimed(stores, "t");
      const full = { code: "unavailable" };
      const flood = async () => {
        for (;;) await stores.events.append(claim.lease, [note(LONG)]);
      };
      await expect(flood()).rejects.toMatchObject(full);
      const { last } = await stores.events.bounds(keyOf(claim));
      expect(last).toBeLessThan(12);
      await expect(stores.threads.create(ADA, { id: "u", metadata: {} })).rejects.toMatchObject(full);
      await expect(stores.runs.start(ADA, newRun("u"), "reject")).rejects.toMatchObject(full);
      await expect(stores.events.append(claim.lease, [delta("x")])).rejects.toMatchObject(full);
      expect(await stores.threads.get(ADA, "u")).toBeUndefined();

      await stores.events.append(claim.lease, [message("the end"), done()]);
      expect(await readAll(stores, keyOf(claim), last)).toHaveLength(2);
      await claimed(stores, "u");
      expect(await stores.threads.get(ADA, "t")).toBeUndefined();
    }));

  test("is not freed by dropping the thread that needs it", () =>
    inWorld(small(100 * KB), async ({ stores }) => {
      const { lease } = await claimed(stores, "t");
      await stores.events.append(lease, [...upTo(5).map(() => message(LONG)), done()]);
      await expect(stores.runs.start(ADA, newRun("t"), "reject")).rejects.toMatchObject({
        code: "unavailable",
      });
      expect(await stores.threads.messages(ADA, "t")).toHaveLength(5);
    }));

  test("is freed by everything that is deleted", () =>
    inWorld(small(200 * KB), async ({ stores }) => {
      // Were anything kept, this thread would be the first to go.
      await stores.threads.create(BOB, { id: "witness", metadata: {} });
      for (let n = 0; n < 50; n++) {
        await stores.threads.create(ADA, { id: "t", title: LONG, metadata: {} });
        await fill(stores, "t");
        await stores.threads.delete(ADA, "t");
      }
      expect(await stores.threads.get(BOB, "witness")).toBeDefined();
    }));

  const callOf = (thread_id: string) => ({
    ...{ owner: ADA, thread_id, run_id: "run_1", call_id: "call_1", tool: "weather" },
    ...{ token_hash: tokenHash(thread_id), expires_at: "2026-11-21T10:30:00.000Z" },
  });

  test("is used by deferred results, and freed when they are settled", () =>
    inWorld(small(200 * KB), async ({ stores: { threads, deferredCalls }, stores }) => {
      await threads.create(BOB, { id: "witness", metadata: {} });
      const deliver = async (id: string) => {
        await deferredCalls.open(callOf(id));
        await deferredCalls.deliver(tokenHash(id), { result: LONG });
      };
      for (let n = 0; n < 50; n++) {
        await threads.create(ADA, { id: "t", metadata: {} });
        await deliver("t");
        await deliver("t");
        await deferredCalls.forget(callOf("t"));
        await deliver("t");
        if (n % 2) await threads.clear(ADA, "t");
        await threads.delete(ADA, "t");
      }
      expect(await threads.get(BOB, "witness")).toBeDefined();
      const flood = async () => {
        for (let n = 0; ; n++) {
          await claimed(stores, `t${n}`);
          await deliver(`t${n}`);
        }
      };
      await expect(flood()).rejects.toMatchObject({ code: "unavailable" });
      expect((await threads.list(ADA, { limit: 100 })).items.length).toBeLessThan(20);
    }));

  test("includes deferred results even while their thread is compressed", () =>
    inWorld(small(200 * KB, { uncompressedBytes: 0 }), async ({ stores: { threads, deferredCalls } }) => {
      for (const n of upTo(50)) {
        await threads.create(ADA, { id: `t${n}`, metadata: {} });
        await deferredCalls.open(callOf(`t${n}`));
        await deferredCalls.deliver(tokenHash(`t${n}`), { result: LONG });
      }
      const { items } = await threads.list(ADA, { limit: 100 });
      expect(items.length).toBeGreaterThan(10);
      expect(items.length).toBeLessThan(20);
      expect(await deferredCalls.due(100)).toHaveLength(items.length);
    }));

  test("is freed by a thread that continues to exist", () =>
    inWorld(small(200 * KB, { eventRetentionMs: 0 }), async ({ stores }) => {
      await stores.threads.create(BOB, { id: "witness", metadata: {} });
      for (let n = 0; n < 50; n++) {
        const request = { settings: {}, input: [message(LONG).data.message] };
        const { lease, run } = await claimed(stores, "t", { id: `run_${n}`, request });
        await stores.threads.update(ADA, "t", { title: n % 2 ? LONG : "short" });
        const left = [message(LONG), message(LONG)];
        for (const { data } of left) await stores.runs.steer(ADA, "t", run.id, data.message as UserMessage);
        await stores.events.append(lease, [
          ...left.slice(1),
          ...[
            patch("files", { a: LONG, b: null }),
            patch("files", { a: LONG.slice(1) }),
            patch("files", { a: null }),
          ],
          ...[
            state("todos", [LONG]),
            state("todos", []),
            state("gone", LONG),
            state("gone", undefined),
            done(),
          ],
        ]);
        expect(await stores.events.bounds(lease)).toEqual({ first: 0, last: 0 });
        const notes = { kind: "notes", owner: ADA, of: { thread: "t" } } as const;
        for (const [seen, version] of [
          [undefined, "first"],
          ["first", "second"],
        ] as const)
          expect(await stores.documents.write(notes, [{ key: "k", seen, body: LONG }], { version })).toBe(
            "written",
          );
        await stores.threads.clear(ADA, "t");
      }
      expect(await stores.threads.get(BOB, "witness")).toBeDefined();
    }));

  test("is measured by a value's current size", () =>
    inWorld(small(800 * KB, { eventsPerRun: 1 }), async ({ stores }) => {
      await stores.threads.create(BOB, { id: "witness", metadata: {} });
      const { lease } = await claimed(stores, "t");
      for (let n = 0; n < 100; n++) {
        const change = [patch("files", { [`f${n}`]: LONG, a: LONG }), patch("files", { [`f${n}`]: null })];
        await stores.events.append(lease, [...change, state("todos", [LONG, n]), note("x")]);
      }
      await stores.events.append(lease, [done()]);
      await stores.threads.create(ADA, { id: "u", metadata: {} });
      expect(await stores.threads.get(BOB, "witness")).toBeDefined();
    }));

  describe("every five minutes, a sweep deletes", () => {
    afterEach(() => void vi.useRealTimers());
    const sweep = () => vi.advanceTimersByTime(5 * MINUTE);

    test("expired threads", async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      await inWorld(small(50 * KB, { interruptedTtlMs: 2 * HOUR }), async ({ stores, advance }) => {
        await fill(stores, "asks", "interrupted");
        advance(2 * HOUR);
        await fill(stores, "fresh");
        sweep();
        // Without the sweep the idle thread would have to go, for one that can no longer be reached.
        await fill(stores, "a");
        await stores.threads.create(ADA, { id: "b", metadata: {} });
        expect(await present(stores)).toEqual(["a", "b", "fresh"]);
      });
    });

    test("events of runs that ended an hour ago", async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
      await inWorld(small(100 * KB, { threadTtlMs: 24 * HOUR }), async ({ stores, advance }) => {
        const { lease } = await claimed(stores, "old");
        await stores.events.append(lease, [...upTo(9).map(() => note(LONG)), done()]);
        const reader = stores.events.read(lease, 0, new AbortController().signal);
        await reader.next();
        advance(HOUR);
        sweep();
        for (const id of ["a", "b"]) await fill(stores, id);
        expect(await present(stores)).toEqual(["a", "b", "old"]);
        expect(await readAll(stores, lease, 10)).toEqual([]);
        await expect(readAll(stores, lease, 9)).rejects.toMatchObject({ code: "events_expired" });
      });
    });
  });
});

describe("a compressed thread", () => {
  const packing = (more: MemoryStoreOptions = {}): Open => {
    return async (options) => createMemoryStores({ ...options, ...more, uncompressedBytes: 0 });
  };

  /** Uses other threads than `t`. */
  const packed = (stores: Stores) => stores.threads.create(BOB, { id: `${Math.random()}`, metadata: {} });

  test("does not change", () =>
    inWorld(packing(), async ({ stores }) => {
      const first = await claimed(stores, "t", { idempotency_key: "k", metadata: { a: 1 } });
      const told = message("one \ud800\u0000");
      await stores.events.append(first.lease, [
        delta("a\nb"),
        told,
        state("__proto__", { x: 1 }),
        failure("broken"),
      ]);
      const second = await claimed(stores, "t");
      await stores.events.append(second.lease, [note("x"), done("interrupted")]);
      const look = async () => ({
        thread: await stores.threads.get(ADA, "t"),
        messages: await stores.threads.messages(ADA, "t"),
        state: JSON.stringify(await stores.threads.state(ADA, "t")),
        runs: await stores.runs.list(ADA, "t", { limit: 10 }),
        begun: await stores.runs.begun(ADA, "t", first.run.id),
        logs: [await readAll(stores, first.lease), await readAll(stores, second.lease)],
      });
      const before = await look();
      await packed(stores);
      expect(await stores.threads.list(ADA, { limit: 10 })).toEqual({ items: [before.thread] });
      expect(await look()).toEqual(before);
      const [kept] = await stores.threads.messages(ADA, "t");
      expect(() => Object.assign(kept ?? {}, { content: "changed" })).toThrow(TypeError);
      await packed(stores);
      expect(await stores.runs.start(ADA, newRun("t", { idempotency_key: "k" }), "reject")).toMatchObject({
        outcome: "known",
      });
      const { lease, run } = await claimed(stores, "t");
      expect(await stores.runs.begun(ADA, "t", second.run.id)).toEqual(run);
      await stores.events.append(lease, [told, message("two")]);
      expect(await stores.threads.messages(ADA, "t")).toHaveLength(2);
    }));

  test("can be read on by a paused reader, and deleted during reading", () =>
    inWorld(packing({ eventsPerRun: 200 }), async ({ stores }) => {
      const { lease } = await claimed(stores, "t");
      await stores.events.append(lease, [...upTo(999).map((n) => delta(`${n}`)), done()]);
      const readers = [0, 1].map(() => stores.events.read(lease, 800, new AbortController().signal));
      const seen = (await Promise.all(readers.map((reader) => reader.next()))).map(({ value }) => [
        ...(value ?? []),
      ]);
      await packed(stores);
      const [reader, other] = readers;
      for await (const batch of reader ?? []) {
        seen[0]?.push(...batch);
        await packed(stores);
      }
      expect(seqsOf(seen[0] ?? [])).toEqual(upTo(1000, 801));
      await packed(stores);
      await stores.threads.delete(ADA, "t");
      await expect(other?.next()).rejects.toMatchObject({ code: "events_expired" });
    }));

  test("counts with its full size while it is used, and a small one otherwise", () =>
    inWorld(packing({ maxBytes: 150 * 1024 }), async ({ stores }) => {
      const long = message("x".repeat(40 * 1024));
      for (let n = 0; n < 20; n++) {
        const { lease } = await claimed(stores, `t${n}`);
        await stores.events.append(lease, [long, done()]);
      }
      expect((await stores.threads.list(ADA, { limit: 100 })).items).toHaveLength(20);
      const { lease } = await claimed(stores, "t3");
      await stores.events.append(lease, [note("x".repeat(100 * 1024))]);
      await expect(stores.events.append(lease, [note("x")])).rejects.toMatchObject({ code: "unavailable" });
    }));
});
