import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import type { StoreOptions } from "../../../src/engine/stores/options.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { busContract } from "../../contracts/bus.ts";
import { resultsAfterClockSetBackContract } from "../../contracts/clock-set-back.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { documentStepsContract } from "../../contracts/documents-steps.ts";
import { eventsContract } from "../../contracts/events.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { nounsOfDocumentsContract, nounsWithRunsContract } from "../../contracts/nouns.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { schedulesContract } from "../../contracts/schedules.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { isNightly } from "../../support/seed.ts";
import {
  ADA,
  BOB,
  claimed,
  delta,
  done,
  inWorld,
  keyOf,
  message,
  newRun,
  note,
  type Open,
  openingAgain,
  readAll,
  seqsOf,
  state,
  upTo,
} from "./fixture.ts";
import { CALL, HOUR, temporaryDatabase } from "./sqlite-file.ts";

const { dataDir, inFile, path } = temporaryDatabase();

const open: Open = async (options) => createSqliteStores({ dataDir: dataDir(), ...options });

threadsContract(open);
runsContract(open);
eventsContract(open);
anyCommandsContract(
  openingAgain(
    () => mkdtempSync(join(dataDir(), "one-")),
    async (dir, options) => createSqliteStores({ dataDir: dir, ...options }),
  ),
  25,
);
deferredCallsContract(open);
resultsAfterClockSetBackContract(open);
documentsContract(open);
documentListsContract(open);
documentStepsContract(open);
itemLivesContract(open);
busContract(open);
ownersContract(open);
storesContract(open);
nounsWithRunsContract(open);
schedulesContract(open);
// They write documents only, which have a contract of their own. By day, memory and Redis are enough.
if (isNightly) nounsOfDocumentsContract(open);

const TABLES = ["threads", "runs", "messages", "state", "inbox", "events", "deferred_calls", "documents"];
const countRows = () =>
  inFile((file) => TABLES.map((table) => file.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n));

describe("a database", () => {
  test("keeps pending writes when it is closed", async () => {
    const stores = createSqliteStores({ path: path() });
    const claim = await claimed(stores, "t");
    const appends = [delta("a"), delta("b")].map((event) => stores.events.append(claim.lease, [event]));
    await stores.close();
    await Promise.all(appends);
    const again = createSqliteStores({ path: path() });
    expect(await again.events.bounds(keyOf(claim))).toEqual({ first: 1, last: 2 });
    await again.close();
  });

  test("processes requests in order", () =>
    inWorld(open, async ({ stores }) => {
      const { lease } = await claimed(stores, "t");
      const { threads, runs, events } = stores;
      const asked = [
        events.append(lease, [delta("x"), done()]),
        runs.start(ADA, newRun("t"), "reject"),
      ] as const;
      const [, started] = await Promise.all(asked);
      if (started.outcome !== "claimed") throw new Error(started.outcome);
      const end = events.append(started.claim.lease, [done()]);
      const steered = runs.steer(ADA, "t", started.claim.run.id, userMessage("late"));
      expect(await steered).toBe(false);
      await end;
      const told = message("one");
      const { lease: again } = await claimed(stores, "t");
      const saying = events.append(again, [told, state("todos", ["a"]), done()]);
      const forgetting = threads.update(ADA, "t", { forget: ["todos"] });
      const rewinding = claimed(stores, "t", { rewind_to: told.data.message.id });
      const [, , { lease: last }] = await Promise.all([saying, forgetting, rewinding]);
      expect(await threads.state(ADA, "t")).toEqual({});
      expect(await threads.messages(ADA, "t")).toEqual([]);
      const ending = events.append(last, [done()]);
      expect(await Promise.all([ending, threads.delete(ADA, "t")])).toEqual([undefined, true]);
    }));

  test("releases a run after all earlier writes, but not after its end was written", () =>
    inWorld(open, async ({ stores: { runs, events }, stores }) => {
      const { lease } = await claimed(stores, "t");
      await Promise.all([events.append(lease, [delta("x")]), runs.release(lease)]);
      const [taken] = await runs.claimAbandoned(1);
      if (!taken) throw new Error("It was not taken over.");
      const end = events.append(taken.lease, [done()]);
      await expect(runs.release(taken.lease)).rejects.toMatchObject({ code: "lease_lost" });
      await end;
      expect(seqsOf(await readAll(stores, lease))).toEqual([1, 2]);
    }));

  test("keeps the order of queued runs until it is opened again", async () => {
    let time = 0;
    const options = { path: path(), now: () => time, tenantQueueLength: 3 };
    const stores = createSqliteStores(options);
    const other = { tenant: "other", user: "eve" };
    await claimed(stores, "died");
    const given = await claimed(stores, "given back");
    for (const [owner, thread] of [[ADA, "a"] as const, [other, "b"] as const]) {
      time++;
      await stores.runs.enqueue(owner, newRun(thread), "reject");
    }
    await stores.runs.release(given.lease);
    await stores.close();

    const { runs, close } = createSqliteStores(options);
    await expect(runs.enqueue(BOB, newRun("c"), "reject")).rejects.toMatchObject({ code: "limit_exceeded" });
    const look = async () => (await runs.claimAbandoned(1)).map(({ lease }) => lease.thread_id).join();
    const first = [await look(), await look()];
    expect(first.map((thread) => thread === "b")).toEqual([false, true]);
    expect([first[0], await look(), await look()].sort()).toEqual(["a", "died", "given back"]);
    expect(await look()).toBe("");
    await close();
  });

  test("keeps queued runs if it fails for a while", async () => {
    await createSqliteStores({ path: path() }).close();
    inFile((file) =>
      file.exec(`CREATE TRIGGER fails BEFORE UPDATE ON runs WHEN NEW.status = 'running' AND NEW.thread_id = 't2'
        AND NOT EXISTS (SELECT 1 FROM messages) BEGIN SELECT RAISE(FAIL, 'for a while'); END`),
    );
    await inWorld(open, async ({ stores }) => {
      const { lease } = await claimed(stores, "other");
      for (const n of upTo(3)) await stores.runs.enqueue(ADA, newRun(`t${n}`), "reject");
      const claim = async () => (await stores.runs.claimAbandoned(3)).map(({ lease }) => lease.thread_id);
      expect([await claim(), await claim()]).toEqual([["t1"], ["t3"]]);
      await expect(claim()).rejects.toMatchObject({ code: "unavailable" });
      await stores.events.append(lease, [message("it works again")]);
      expect(await claim()).toEqual(["t2"]);
    });
  });

  test("keeps a run's output even if another run's cannot be written", () =>
    inWorld(open, async ({ stores }) => {
      const [good, bad] = [await claimed(stores, "good"), await claimed(stores, "bad")];
      const broken = message("x");
      Object.assign(broken.data.message, { id: undefined });
      const results = await Promise.allSettled([
        stores.events.append(good.lease, [message("one")]),
        stores.events.append(bad.lease, [delta("x"), broken]),
        stores.events.append(good.lease, [message("two")]),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(await stores.threads.messages(ADA, "good")).toHaveLength(2);
      expect(await stores.events.bounds(keyOf(bad))).toEqual({ first: 0, last: 0 });
      await stores.events.append(bad.lease, [note("y"), done()]);
      expect(seqsOf(await readAll(stores, keyOf(bad)))).toEqual([1, 2]);
    }));

  test("keeps other runs' output if the log of one run fails, and logs the reason", async () => {
    await createSqliteStores({ path: path() }).close();
    inFile((file) =>
      file.exec(`CREATE TRIGGER stuck BEFORE INSERT ON events WHEN NEW.run_id = 'run_bad'
        BEGIN SELECT RAISE(ABORT, 'this row is broken'); END`),
    );
    const lines: object[] = [];
    const logger = { info() {}, warn: (line: object) => void lines.push(line), error() {} };
    const stores = createSqliteStores({ path: path(), logger });
    const [bad, good] = [await claimed(stores, "bad", { id: "run_bad" }), await claimed(stores, "good")];
    await stores.events.append(bad.lease, [delta("kept")]);
    for (let n = 0; n < 300; n++) await stores.events.append(good.lease, [delta("x")]);
    await stores.events.append(good.lease, [done()]);
    expect(lines).toMatchObject([
      { err: { message: expect.stringContaining("this row is broken") }, run_id: "run_bad" },
    ]);
    await expect(stores.events.append(bad.lease, [done()])).rejects.toThrow("this row is broken");
    expect(await readAll(stores, keyOf(good))).toHaveLength(301);
    await stores.close();
  });

  test("writes several runs' megabytes in separate ticks of the event loop", () =>
    inWorld(open, async ({ stores }) => {
      const claims = await Promise.all(upTo(4).map((n) => claimed(stores, `t${n}`)));
      let turns = 0;
      let isOver = false;
      const count = () => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      count();
      const writes = claims.map(async ({ lease }) => {
        await stores.events.append(lease, [delta("x".repeat(512 * 1024))]);
        return turns;
      });
      const written = await Promise.all(writes);
      isOver = true;
      expect(new Set(written).size).toBe(4);
    }));

  test("does not grow with a run's old output", async () => {
    await inWorld(
      open,
      async ({ stores }) => {
        const { lease } = await claimed(stores, "t");
        for (let n = 0; n < 40; n++)
          await stores.events.append(
            lease,
            upTo(100).map(() => note("x")),
          );
      },
      { eventsPerRun: 100 },
    );
    expect(countRows()[5]).toBeLessThan(1200);
  });

  test("shows an earlier viewer one log without gaps after a take-over", async () => {
    const stores = createSqliteStores({ path: path() });
    const claim = await claimed(stores, "t");
    await stores.events.append(
      claim.lease,
      upTo(100).map((n) => delta(`${n}`)),
    );
    await stores.close();
    const again = createSqliteStores({ path: path() });
    const reading = readAll(again, keyOf(claim), 90);
    const [taken] = await again.runs.claimAbandoned(100);
    if (taken) await again.events.append(taken.lease, [note("on"), done()]);
    expect(seqsOf(await reading)).toEqual(upTo(102, 91));
    await again.close();
  });

  test("leaves no row of a deleted thread", async () => {
    await inWorld(open, async ({ stores }) => {
      const { lease } = await claimed(stores, "t", { idempotency_key: "k" });
      await stores.runs.steer(ADA, "t", lease.run_id, userMessage("left"));
      await stores.deferredCalls.open(CALL);
      await stores.items.put({ owner: ADA, of: { thread: "t" }, kind: "notes" }, { key: "k", value: 1 });
      await stores.events.append(lease, [message("one"), state("a", 1), delta("x"), done()]);
      await stores.threads.delete(ADA, "t");
    });
    expect(countRows()).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  test.each<[string, StoreOptions, number[]]>([
    ["events", { now: () => 24 * HOUR }, [250, 250, 250, 0, 0, 0, 0, 0]],
    ["expired threads", { now: () => HOUR, threadTtlMs: HOUR }, [0, 0, 0, 0, 0, 0, 0, 0]],
  ])("sweeps %s when it is opened", async (_, options, rows) => {
    const stores = createSqliteStores({ path: path(), now: () => 0 });
    for (let n = 0; n < 250; n++) {
      const { lease } = await claimed(stores, `t${n}`);
      await stores.events.append(lease, [message("x"), done()]);
    }
    await stores.close();
    const again = createSqliteStores({ path: path(), ...options });
    // The sweep works in steps and yields after each.
    for (let n = 0; n < 20; n++) await new Promise(setImmediate);
    await again.close();
    expect(countRows()).toEqual(rows);
  });

  test("keeps threads without limit unless a time to live is set", () =>
    inWorld(open, async ({ stores, advance }) => {
      await stores.threads.create(ADA, { id: "t", metadata: {} });
      advance(100_000 * HOUR);
      expect(await stores.threads.get(ADA, "t")).toBeDefined();
    }));
});
