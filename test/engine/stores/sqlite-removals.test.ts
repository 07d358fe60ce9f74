// What is deleted of long threads is deleted in slices: others are served in between, and no one sees a part of it.

import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import type { StoreOptions } from "../../../src/engine/stores/options.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { ADA, BOB, claimed, done, inWorld, message, newRun, note, upTo, type World } from "./fixture.ts";
import { HOUR, temporaryDatabase } from "./sqlite-file.ts";

const { dataDir, inFile, path } = temporaryDatabase();

const LENGTH = 2000;
/** No transaction deletes more rows. */
const MOST_ROWS = 256;

const TABLES = ["threads", "runs", "messages", "state", "inbox", "events", "deferred_calls", "documents"];
const countRows = (...tables: string[]) =>
  inFile((file) =>
    tables.reduce(
      (sum, table) => sum + Number(file.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n),
      0,
    ),
  );

async function longThread({ threads }: AllStores, id: string) {
  const messages = upTo(LENGTH).map((n) => userMessage(`${n}`));
  await threads.create(ADA, { id, metadata: {}, messages, state: { todos: ["a"] } });
  return messages;
}

/** Runs `body` with a long thread `t` of Ada's; other users have a short one. */
const withLongThread = (body: (world: World) => Promise<void>, more: StoreOptions = {}) =>
  inWorld(
    async (options) => createSqliteStores({ dataDir: dataDir(), ...options, ...more }),
    async (world) => {
      await longThread(world.stores, "t");
      await body(world);
    },
  );

/** How often another user is served before `work` ends. */
async function servedDuring({ threads }: AllStores, work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const end = work.finally(() => {
    isOver = true;
  });
  let served = 0;
  for (; !isOver; await nextTurn()) if (await threads.get(BOB, "other")) served++;
  await end;
  return served;
}

describe("while a long thread", () => {
  const KINDS: [string, (stores: AllStores, last: string) => Promise<unknown>][] = [
    ["is deleted", ({ threads }) => threads.delete(ADA, "t")],
    ["is cleared", ({ threads }) => threads.clear(ADA, "t")],
    ["is copied", ({ threads }) => threads.fork(ADA, "t", { id: "copy", metadata: {} })],
    ["is begun again from its start", (stores, first) => claimed(stores, "t", { rewind_to: first })],
  ];

  test.each(KINDS)("%s, others are served", (_, remove) =>
    withLongThread(async ({ stores }) => {
      await stores.threads.create(BOB, { id: "other", metadata: {} });
      const [first] = await stores.threads.messages(ADA, "t", { limit: 1 });
      const served = await servedDuring(stores, remove(stores, first?.id ?? ""));
      expect(served).toBeGreaterThan(LENGTH / MOST_ROWS);
    }),
  );

  test("expires, others are served, and no one can find it", () =>
    withLongThread(
      async ({ stores, advance }) => {
        advance(HOUR);
        await stores.threads.create(BOB, { id: "other", metadata: {} });
        const served = await servedDuring(
          stores,
          stores.threads.messages(ADA, "t").then((all) => expect(all).toEqual([])),
        );
        expect(served).toBeGreaterThan(LENGTH / MOST_ROWS);
        expect(await stores.threads.get(ADA, "t")).toBeUndefined();
      },
      { threadTtlMs: HOUR },
    ));

  test("that was cleared expires, all waiting calls are answered", () =>
    withLongThread(
      async ({ stores: { threads }, advance }) => {
        const cleared = threads.clear(ADA, "t");
        const earlier = threads.get(ADA, "t");
        advance(HOUR);
        const later = threads.get(ADA, "t");
        expect(await Promise.all([cleared, earlier, later])).toEqual([true, undefined, undefined]);
      },
      { threadTtlMs: HOUR },
    ));

  test.each(["stays", "is deleted immediately"])(
    "loses its copy to a thread with the same id that %s, others are served, and no part of it becomes a thread",
    (then) =>
      withLongThread(async ({ stores, stores: { threads } }) => {
        await threads.create(BOB, { id: "other", metadata: {} });
        const copying = threads.fork(ADA, "t", { id: "c", metadata: {} });
        const refused = expect(copying).rejects.toMatchObject({ code: "already_exists" });
        for (let turn = 0; turn < 10; turn++) await nextTurn();
        const created = threads.create(ADA, { id: "c", metadata: {} });
        if (then === "stays") expect(await servedDuring(stores, created)).toBeGreaterThan(1);
        else expect([(await created).id, await threads.delete(ADA, "c")]).toEqual(["c", true]);
        await refused;
        expect((await threads.get(ADA, "c"))?.id).toBe(then === "stays" ? "c" : undefined);
        expect(await threads.messages(ADA, "c")).toEqual([]);
      }),
  );

  test("is deleted, no one can find it, and a new one with its id has none of its data", () =>
    withLongThread(async ({ stores: { threads, runs } }) => {
      const deleted = threads.delete(ADA, "t");
      await nextTurn();
      expect((await threads.list(ADA, { limit: 10 })).items).toEqual([]);
      expect(await threads.bytes(ADA, "t")).toBe(0);
      const run = newRun("t");
      const started = runs.start(ADA, run, "reject");
      expect(await Promise.all([deleted, started])).toMatchObject([true, { outcome: "claimed" }]);
      expect(await threads.messages(ADA, "t")).toEqual([]);
      expect(await threads.state(ADA, "t")).toEqual({});
      expect((await runs.list(ADA, "t", { limit: 10 })).items.map(({ id }) => id)).toEqual([run.id]);
    }));
});

describe("data that a process has left to be deleted", () => {
  /** The process ends after the first slice. */
  async function interrupted(remove: (stores: AllStores, ids: readonly string[]) => Promise<unknown>) {
    const stores = createSqliteStores({ path: path() });
    const ids = (await longThread(stores, "t")).map(({ id }) => id);
    const removing = remove(stores, ids).catch(() => "cut off");
    await nextTurn();
    await stores.close();
    expect(await removing).toBe("cut off");
    return ids;
  }

  test("is deleted by the next one for a deleted thread, which that process does not have", async () => {
    await interrupted(({ threads }) => threads.delete(ADA, "t"));
    expect(countRows("messages")).toBeGreaterThan(LENGTH / 2);
    const again = createSqliteStores({ path: path() });
    expect((await again.threads.list(ADA, { limit: 10 })).items).toEqual([]);
    expect(await again.threads.messages(ADA, "t")).toEqual([]);
    await again.close();
    expect(countRows(...TABLES)).toBe(0);
  });

  test("is deleted by the next one for a run that starts over, with the run and earlier messages kept", async () => {
    const ids = await interrupted((stores, all) => claimed(stores, "t", { rewind_to: all[10] ?? "" }));
    const again = createSqliteStores({ path: path() });
    const [claim] = await again.runs.claimAbandoned(1);
    if (!claim) throw new Error("It was not taken over.");
    const more = message("more");
    await again.events.append(claim.lease, [more, done()]);
    const left = (await again.threads.messages(ADA, "t")).map(({ id }) => id);
    expect(left).toEqual([...ids.slice(0, 10), more.data.message.id]);
    expect(await again.threads.get(ADA, "t")).toMatchObject({ message_count: 11 });
    await again.close();
    expect(countRows("messages")).toBe(11);
  });
});

describe("a failed sweep logs the reason, and the next one tries again:", () => {
  const NOTHING_GOES =
    "CREATE TRIGGER stuck BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END";
  const LEFT: [string, (stores: AllStores) => Promise<unknown>][] = [
    ["an expired thread", async () => {}],
    ["what is left of a deleted thread", ({ threads }) => threads.delete(ADA, "t")],
  ];

  test.each(LEFT)("%s", async (_, remove) => {
    const stores = createSqliteStores({ path: path(), now: () => 0 });
    await longThread(stores, "t");
    const removing = remove(stores).catch(() => {});
    await stores.close();
    await removing;
    inFile((file) => file.exec(NOTHING_GOES));
    const failures: object[] = [];
    const logger = { info() {}, warn: (details: object) => void failures.push(details), error() {} };
    const options = { path: path(), now: () => HOUR, threadTtlMs: HOUR };
    const again = createSqliteStores({ ...options, logger, sweepMs: 1 });
    await expect.poll(() => failures.length).toBeGreaterThan(1);
    await again.close();
    expect(failures[0]).toMatchObject({ err: { message: expect.stringContaining("the disk is broken") } });
    inFile((file) => file.exec("DROP TRIGGER stuck"));
    const cured = createSqliteStores(options);
    expect(await cured.threads.messages(ADA, "t")).toEqual([]);
    await cured.close();
    expect(countRows(...TABLES)).toBe(0);
  });
});

test("expired events are deleted in slices", async () => {
  const stores = createSqliteStores({ path: path(), now: () => 0 });
  const { lease } = await claimed(stores, "t");
  await stores.events.append(lease, [...upTo(LENGTH).map((n) => note(`${n}`)), done()]);
  await stores.close();
  const openFor = async (turns: number) => {
    const again = createSqliteStores({ path: path(), now: () => 24 * HOUR });
    for (let n = 0; n < turns; n++) await nextTurn();
    await again.close();
    return countRows("events");
  };
  expect(await openFor(0)).toBeGreaterThan(LENGTH - MOST_ROWS);
  expect(await openFor(100)).toBe(0);
});
