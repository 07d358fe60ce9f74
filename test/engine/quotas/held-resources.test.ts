import { describe, expect, test } from "vitest";
import { append } from "../../../src/agent/core/document-log.ts";
import { retain } from "../../../src/agent/core/documents.ts";
import { AppError } from "../../../src/agent/core/errors.ts";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { Thread } from "../../../src/agent/core/records.ts";
import type { ThreadStore } from "../../../src/agent/core/stores.ts";
import { countedDocuments } from "../../../src/engine/quotas/counted-documents.ts";
import { admit, holdWhile, withHold } from "../../../src/engine/quotas/holds.ts";
import { createWithMessages } from "../../../src/engine/runs/thread-bytes.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { ADA, BOB, world } from "./world.ts";

describe("held resources", () => {
  const limited = () => world({ user: { threads: 1, streams: 1 } });
  const thread = (id: string) => ({ owner: ADA, id });

  test("no longer count if they could not be created, unless they existed before", async () => {
    const { quotas, store } = limited();
    const fails = () => Promise.reject(new Error("no"));
    await expect(withHold(quotas, thread("1"), fails)).rejects.toThrow("no");
    expect(await withHold(quotas, thread("1"), async () => "made")).toBe("made");
    await expect(withHold(quotas, thread("1"), fails)).rejects.toThrow("no");
    expect((await store.held(ADA)).user.threads).toBe(1);
    await expect(withHold(quotas, thread("2"), async () => "made")).rejects.toMatchObject({
      details: { limit: "threads" },
    });
  });

  test("a thread that was not counted is counted once its creation finds that it exists", async () => {
    const { quotas, store } = limited();
    const exists = () => Promise.reject(new AppError("already_exists", "The thread exists."));
    await expect(withHold(quotas, thread("1"), exists)).rejects.toThrow("exists");
    expect((await store.held(ADA)).user.threads).toBe(1);
  });

  test("an existing thread can be used above the limit", async () => {
    const { quotas, store } = limited();
    await admit(quotas, ADA, { thread: "1" });
    await expect(admit(quotas, ADA, { thread: "2" })).rejects.toThrow("`threads`");
    await admit(quotas, ADA, { thread: "2", isThreadKnown: async () => true });
    expect((await store.held(ADA)).user.threads).toBe(2);
  });

  test("a thread counts until it is deleted, if threads do not expire", async () => {
    const { quotas, store, advance } = limited();
    await withHold(quotas, thread("1"), async () => "made");
    advance(10 * 365 * 24 * 3_600_000);
    expect((await store.held(ADA)).user.threads).toBe(1);
    await quotas.release(ADA, "threads", "1");
    expect((await store.held(ADA)).user.threads).toBe(0);
  });

  describe("a thread that begins with a run", () => {
    const begun = async (isThreadKnown = async () => false) => {
      const { quotas, store, advance } = limited();
      const counted = async () => (await store.held(ADA)).user.threads;
      const begin = () => admit(quotas, ADA, { thread: "1", isThreadKnown });
      return { begin, counted, afterYears: () => advance(10 * 365 * 24 * 3_600_000) };
    };

    test("counts as long as it exists", async () => {
      const { begin, counted, afterYears } = await begun();
      await (await begin()).keepThread();
      afterYears();
      expect(await counted()).toBe(1);
    });

    test("counts for a while if the accepting process dies, but not if the run is refused", async () => {
      const { begin, counted, afterYears } = await begun();
      await begin();
      expect(await counted()).toBe(1);
      afterYears();
      expect(await counted()).toBe(0);
      await (await begin()).release();
      expect(await counted()).toBe(0);
    });

    test.each(["before", "after"])(
      "counts if another run on it is refused %s its own is accepted",
      async (when) => {
        const { begin, counted } = await begun();
        const [refused, accepted] = [await begin(), await begin()];
        if (when === "before") await refused.release();
        await accepted.keepThread();
        await refused.release();
        expect(await counted()).toBe(1);
      },
    );

    test("that was not counted is counted if it exists and its run is refused", async () => {
      const { begin, counted, afterYears } = await begun(async () => true);
      await (await begin()).release();
      afterYears();
      expect(await counted()).toBe(1);
    });
  });

  describe("a thread that begins with messages", () => {
    const YEAR = 365 * 24 * 3_600_000;
    const NEW = { id: "long", metadata: {}, messages: [userMessage("x".repeat(100))] };
    const begun = (create: ThreadStore["create"]) => {
      const { quotas, store, advance } = world({ user: { threads: 5, stored_bytes: 10_000 } });
      const threads = { create, bytes: async () => 200 };
      const creating = createWithMessages({ threads, quotas, threadBytes: undefined }, ADA, NEW);
      const counted = async () => [(await store.held(ADA)).user.threads, (await store.stored(ADA)).user];
      return { creating, counted, advance };
    };

    test("counts with its bytes as long as it exists", async () => {
      const { creating, counted, advance } = begun(async ({ tenant }) => ({ id: tenant }) as Thread);
      await creating;
      advance(YEAR);
      expect(await counted()).toEqual([1, 200]);
    });

    test("counts for ten minutes if the process that creates it dies", async () => {
      const { counted, advance } = begun(() => new Promise(() => {}));
      await expect.poll(counted).toEqual([1, expect.any(Number)]);
      await expect.poll(async () => (await counted())[1]).toBeGreaterThan(100);
      advance(10 * 60_000 + 1);
      expect(await counted()).toEqual([0, 0]);
    });
  });

  test("a run that is given up frees its place, and not the stream that its client reads", async () => {
    const { quotas } = world({ user: { concurrent_runs: 1, streams: 1 } });
    const admission = await admit(quotas, ADA, { run: "run_1", stream: "stream_1" });
    await admission.releaseRun();
    expect(await quotas.acquire(ADA, "runs", "run_2")).toBe(true);
    await expect(quotas.acquire(ADA, "streams", "stream_2")).rejects.toMatchObject({
      code: "limit_exceeded",
    });
  });

  test("a run counts for a minute unless it starts or waits", async () => {
    const { quotas, store, advance } = world({ user: { concurrent_runs: 3 } });
    const runs = async () => (await store.held(ADA)).user.runs;
    for (const id of ["lost", "waits", "starts"]) await admit(quotas, ADA, { run: id });
    await quotas.keepWaiting(ADA, "waits");
    const started = holdWhile(quotas, { owner: ADA, thing: "runs", id: "starts" });
    advance(59_999);
    expect(await runs()).toBe(3);
    await quotas.refresh(ADA, "runs", "starts");
    advance(1);
    expect(await runs()).toBe(2);
    await started.release();
    expect(await runs()).toBe(1);
    advance(59 * 60_000);
    expect(await runs()).toBe(0);
  });

  test("active work counts until it is released or its process has died", async () => {
    const { quotas, store, advance } = limited();
    const kept = holdWhile(quotas, { owner: ADA, thing: "streams", id: "1" });
    expect((await store.held(ADA)).user.streams).toBe(1);
    await kept.release();
    await kept.release();
    expect((await store.held(ADA)).user.streams).toBe(0);
    const other = holdWhile(quotas, { owner: ADA, thing: "streams", id: "2" });
    advance(60_000);
    expect((await store.held(ADA)).user.streams).toBe(0);
    await other.release();
  });
});

describe("documents that count", () => {
  const history = { kind: "history", ...ADA };

  test("do so for their user and tenant until they are deleted, and are refused above either limit", async () => {
    const { quotas, store } = world({ user: { stored_bytes: 10 }, tenant: { stored_bytes: 15 } });
    const documents = countedDocuments(createMemoryStores().documents, quotas, new Set(["history"]));
    const refusedFor = (of: string) => ({ code: "limit_exceeded", details: { limit: "stored_bytes", of } });
    await append(documents, history, "12345");
    await append(documents, { kind: "other", ...ADA }, "not counted");
    expect(await store.stored(ADA)).toEqual({ tenant: 5, user: 5 });
    await expect(append(documents, history, "123456")).rejects.toMatchObject(refusedFor("user"));
    await append(documents, { kind: "history", ...BOB }, "1234567890");
    await expect(append(documents, history, "1")).rejects.toMatchObject(refusedFor("tenant"));
    await expect(append(documents, { kind: "history", tenant: "acme" }, "1")).rejects.toMatchObject(
      refusedFor("tenant"),
    );
    expect(await store.stored(ADA)).toEqual({ tenant: 15, user: 5 });
    await retain(documents, history, { count: 0 });
    expect(await store.stored(ADA)).toEqual({ tenant: 10, user: 0 });
    await append(documents, history, "12", { count: 1 });
    await append(documents, history, "345", { count: 1 });
    expect(await store.stored(ADA)).toEqual({ tenant: 13, user: 3 });
  });

  test("of a tenant count towards no user's limit", async () => {
    const { quotas } = world({ user: { stored_bytes: 100 } });
    await quotas.setDocumentsStored({ kind: "triggers", tenant: "acme" }, 500);
    const ofUser = quotas.setDocumentsStored({ kind: "triggers", ...ADA }, 500);
    await expect(ofUser).rejects.toMatchObject({ code: "limit_exceeded" });
  });

  test("count as before if the store refuses a write, and once if they are replaced", async () => {
    const { quotas, store } = world({ user: { stored_bytes: 10 } });
    const documents = countedDocuments(createMemoryStores().documents, quotas, new Set(["history"]));
    const write = (body: string, seen: string | undefined, version: string) =>
      documents.write(history, [{ key: "k", seen, body }], { version });
    await write("12345", undefined, "v1");
    expect(await write("123456789", "old", "v2")).not.toBe("written");
    expect((await store.stored(ADA)).user).toBe(5);
    expect(await write("12345678", "v1", "v2")).toBe("written");
    expect((await store.stored(ADA)).user).toBe(8);
  });
});
