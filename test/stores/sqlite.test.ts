import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLedger } from "../../src/backends/ledger.ts";
import { tokenHash } from "../../src/core/deferred-calls.ts";
import { NO_USAGE, userMessage } from "../../src/core/message.ts";
import type { StoreOptions } from "../../src/stores/options.ts";
import { createSqliteStores } from "../../src/stores/sqlite/index.ts";
import type { HttpTool } from "../../src/tools/http/registration.ts";
import { createHttpToolStore } from "../../src/tools/http/store.ts";
import { busContract } from "../contracts/bus.ts";
import { deferredCallsContract } from "../contracts/deferred-calls.ts";
import { documentsContract } from "../contracts/documents.ts";
import { eventsContract } from "../contracts/events.ts";
import { itemLivesContract } from "../contracts/items-lives.ts";
import { runsContract } from "../contracts/runs.ts";
import { storesContract } from "../contracts/stores.ts";
import { threadsContract } from "../contracts/threads.ts";
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

const MIB = 1024 * 1024;

let dataDir = "";
const path = () => join(dataDir, "skein.db");
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "skein-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const open: Open = async (options) => createSqliteStores({ dataDir, ...options });

threadsContract(open);
runsContract(open);
eventsContract(open);
deferredCallsContract(open);
documentsContract(open);
itemLivesContract(open);
busContract(open);
storesContract(open);

const HOUR = 3_600_000;

/** The file as it is when nobody has it open. */
function inFile<T>(look: (file: DatabaseSync) => T): T {
  const file = new DatabaseSync(path());
  try {
    return look(file);
  } finally {
    file.close();
  }
}

const TABLES = ["threads", "runs", "messages", "state", "inbox", "events", "deferred_calls", "documents"];
const countRows = () =>
  inFile((file) => TABLES.map((table) => file.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n));

describe("a database", () => {
  test("keeps everything until it is opened again", async () => {
    const stores = createSqliteStores({ path: path() });
    const thread = await stores.threads.create(ADA, { id: "t", title: "Trip", metadata: { a: 1 } });
    const first = await claimed(stores, "t", { idempotency_key: "k" });
    const events = [
      message("one"),
      state("todos", ["a"]),
      patch("files", { a: 1 }),
      delta("x"),
      failure("broken"),
    ];
    await stores.events.append(first.lease, events);
    const waiting = [newRun("t"), newRun("t"), newRun("t")] as const;
    const second = await claimed(stores, "t");
    for (const run of waiting) await stores.runs.start(ADA, run, "front");
    const left = userMessage("left");
    await stores.runs.steer(ADA, "t", second.run.id, left);
    await stores.runs.requestStop(ADA, "t", second.run.id, "interrupt");
    const look = async ({ threads, runs }: typeof stores) => ({
      thread: await threads.get(ADA, "t"),
      messages: await threads.messages(ADA, "t"),
      state: await threads.state(ADA, "t"),
      runs: await runs.list(ADA, "t", { limit: 10 }),
    });
    const before = await look(stores);
    const log = await readAll(stores, keyOf(first));
    await stores.close();

    const again = createSqliteStores({ path: path() });
    try {
      expect(await look(again)).toEqual(before);
      expect(before.thread).toMatchObject({
        created_at: thread.created_at,
        status: "busy",
        message_count: 1,
      });
      expect(await readAll(again, keyOf(first))).toEqual(log);
      expect(await again.runs.start(ADA, newRun("t", { idempotency_key: "k" }), "reject")).toMatchObject({
        ...{ outcome: "known", run: { id: first.run.id, status: "error" } },
      });
      await expect(again.events.append(second.lease, [note("from before")])).rejects.toMatchObject({
        code: "lease_lost",
      });
      const [claim, ...more] = await again.runs.claimAbandoned(100);
      expect(more).toEqual([]);
      expect(claim).toMatchObject({
        lease: { owner: ADA, epoch: second.lease.epoch + 1 },
        run: { id: second.run.id, attempt: 2 },
        request: second.request,
      });
      if (!claim) return;
      expect(await again.runs.inbox(claim.lease)).toEqual([left]);
      expect(await again.runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
      let { lease } = claim;
      for (const { id } of waiting.toReversed()) {
        await again.events.append(lease, [done()]);
        const next = await again.runs.claimNext(ADA, "t");
        expect(next?.run.id).toBe(id);
        if (next) lease = next.lease;
      }
    } finally {
      await again.close();
    }
  });

  test("keeps what waits to be written when it is closed", async () => {
    const stores = createSqliteStores({ path: path() });
    const claim = await claimed(stores, "t");
    const appends = [delta("a"), delta("b")].map((event) => stores.events.append(claim.lease, [event]));
    await stores.close();
    await Promise.all(appends);
    const again = createSqliteStores({ path: path() });
    expect(await again.events.bounds(keyOf(claim))).toEqual({ first: 1, last: 2 });
    await again.close();
  });

  test("takes things in the order in which they are asked for", () =>
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

  test("gives a run back after all that it was told to write, and not once it was told of the end", () =>
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

  test("keeps in their turn the runs that wait until it is opened again", async () => {
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

  test("remembers how often a run was given back", async () => {
    const options = { path: path(), maxAttempts: 2 };
    const stores = createSqliteStores(options);
    const { lease } = await claimed(stores, "t");
    await stores.runs.release(lease);
    await stores.close();
    for (const attempt of [2, 3]) {
      const again = createSqliteStores(options);
      expect(await again.runs.claimAbandoned(1)).toMatchObject([{ run: { attempt } }]);
      await again.close();
    }
    const last = createSqliteStores(options);
    expect(await last.runs.claimAbandoned(1)).toEqual([]);
    expect(await last.runs.get(ADA, "t", lease.run_id)).toMatchObject({
      error: { details: { attempts: 2 } },
    });
    await last.close();
  });

  test("forgets no run that waits when it fails for a while", async () => {
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

  test("keeps what one run says although another's cannot be written", () =>
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

  test("does not grow with what a run said long ago", async () => {
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

  test("shows a viewer who was there before the take-over one log without a hole", async () => {
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

  test("is swept of events when it is opened", async () => {
    const options = (now: number): StoreOptions => ({ now: () => now });
    const stores = createSqliteStores({ path: path(), ...options(0) });
    for (let n = 0; n < 250; n++) {
      const { lease } = await claimed(stores, `t${n}`);
      await stores.events.append(lease, [message("x"), done()]);
    }
    await stores.close();
    const again = createSqliteStores({ path: path(), ...options(24 * HOUR) });
    // The sweep goes on in steps; each lets others work.
    for (let n = 0; n < 5; n++) await new Promise(setImmediate);
    await again.close();
    expect(countRows()).toEqual([250, 250, 250, 0, 0, 0, 0, 0]);
  });

  test("is swept of threads whose time is up when it is opened", async () => {
    const stores = createSqliteStores({ path: path(), now: () => 0 });
    for (let n = 0; n < 250; n++)
      await claimed(stores, `t${n}`).then(({ lease }) => stores.events.append(lease, [done()]));
    await stores.close();
    const again = createSqliteStores({ path: path(), now: () => HOUR, threadTtlMs: HOUR });
    expect((await again.threads.list(ADA, { limit: 10 })).items).toEqual([]);
    // The sweep works in steps and yields after each.
    for (let n = 0; n < 5; n++) await new Promise(setImmediate);
    await again.close();
    expect(countRows()).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  test("keeps threads for ever, unless they are given a time", async () => {
    await inWorld(open, async ({ stores, advance }) => {
      await stores.threads.create(ADA, { id: "t", metadata: {} });
      advance(100_000 * HOUR);
      expect(await stores.threads.get(ADA, "t")).toBeDefined();
      await stores.threads.delete(ADA, "t");
    });
    const ttl: StoreOptions = { threadTtlMs: HOUR, interruptedTtlMs: 3 * HOUR };
    await inWorld(
      open,
      async ({ stores, advance }) => {
        const shelf = (thread: string) => ({ owner: ADA, of: { thread }, kind: "notes" as const });
        for (const id of ["idle", "read", "noted"]) await stores.threads.create(ADA, { id, metadata: {} });
        await stores.items.put(shelf("idle"), { key: "k", value: 1 });
        await stores.events.append((await claimed(stores, "asks")).lease, [done("interrupted")]);
        await claimed(stores, "runs");
        advance(HOUR - 1);
        await stores.threads.messages(ADA, "read");
        await stores.items.list(shelf("noted"));
        advance(1);
        expect(await stores.items.list(shelf("idle"))).toEqual([]);
        await expect(stores.items.put(shelf("idle"), { key: "k", value: 1 })).rejects.toMatchObject({
          code: "not_found",
        });
        expect(await stores.threads.get(ADA, "idle")).toBeUndefined();
        const left = (await stores.threads.list(ADA, { limit: 10 })).items.map(({ id }) => id);
        expect(left.sort()).toEqual(["asks", "noted", "read", "runs"]);
        advance(3 * HOUR);
        expect((await stores.threads.list(ADA, { limit: 10 })).items.map(({ id }) => id)).toEqual(["runs"]);
      },
      ttl,
    );
  });

  test("that a newer version wrote is refused with a reason", async () => {
    await createSqliteStores({ path: path() }).close();
    inFile((file) => file.exec("PRAGMA user_version = 99"));
    expect(() => createSqliteStores({ path: path() })).toThrow(/newer version.*schema 99/);
    inFile((file) => expect(file.prepare("PRAGMA user_version").get()).toEqual({ user_version: 99 }));
  });

  test("of another program is left alone", () => {
    for (const version of [0, 1]) {
      rmSync(path(), { force: true });
      inFile((file) => file.exec(`CREATE TABLE theirs (a); PRAGMA user_version = ${version}`));
      expect(() => createSqliteStores({ path: path() })).toThrow(/another program/);
      inFile((file) =>
        expect(file.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "theirs" }]),
      );
    }
  });

  test("that lacks a table is refused and let go", () => {
    inFile((file) => file.exec("CREATE TABLE threads (id); PRAGMA user_version = 2"));
    for (let n = 0; n < 2; n++)
      expect(() => createSqliteStores({ path: path() })).toThrow(
        expect.objectContaining({ code: "unavailable", message: expect.not.stringContaining("in use") }),
      );
  });

  test("that is none is refused with its path", () => {
    writeFileSync(path(), "not a database ".repeat(1000));
    expect(() => createSqliteStores({ path: path() })).toThrow(path());
    expect(() => createSqliteStores({ path: join(path(), "below", "a.db") })).toThrow(
      expect.objectContaining({ code: "unavailable" }),
    );
  });

  test("is made with its folder when there is none", async () => {
    const stores = createSqliteStores({ dataDir: join(dataDir, "a", "b") });
    await stores.ping();
    await stores.close();
  });

  test("is opened once in a process, too", async () => {
    const stores = createSqliteStores({ path: path() });
    expect(() => createSqliteStores({ path: path() })).toThrow(/in use/);
    await claimed(stores, "t");
    await stores.close();
    await createSqliteStores({ path: path() }).close();
  });
});

describe("a database of an older version", () => {
  test("written by the first release is there with its threads, runs, questions, keys and queue", async () => {
    writeFileSync(path(), gunzipSync(readFileSync("test/fixtures/stores/sqlite-0.1.db.gz")));
    const now = () => Date.parse("2026-11-20T10:05:00.000Z");
    const stores = createSqliteStores({ path: path(), now });
    const { threads, runs, events, deferredCalls, close } = stores;
    const statusOf = async (id: string) => (await runs.get(ADA, "t", id))?.status;
    try {
      const { items } = await threads.list(ADA, { limit: 10 });
      expect(items.map(({ id, status, message_count }) => [id, status, message_count])).toEqual([
        ["waits", "busy", 0],
        ["t", "busy", 2],
        ["asks", "interrupted", 0],
      ]);
      expect(items[1]).toMatchObject({ title: "Old", metadata: { a: "b" }, agent: "helper" });
      expect(await threads.state(ADA, "t")).toEqual({ todos: ["a"] });
      expect(await runs.known(ADA, "t", "k1")).toMatchObject({
        id: "run_1",
        status: "interrupted",
        usage: { input_tokens: 3 },
        metadata: { n: 1 },
      });
      const log = await readAll(stores, { owner: ADA, thread_id: "t", run_id: "run_1" });
      expect(seqsOf(log)).toEqual(upTo(6));
      expect(await Promise.all(["run_2", "run_3", "run_4", "run_5"].map(statusOf))).toEqual([
        "running",
        "pending",
        "pending",
        "pending",
      ]);
      expect(await runs.start(ADA, newRun("t", { idempotency_key: "k3" }), "reject")).toMatchObject({
        outcome: "known",
        run: { id: "run_3" },
      });

      // The process died that executed the run; the others come after it in their order.
      const taken = await runs.claimAbandoned(5);
      expect(taken.map(({ run }) => run.id).sort()).toEqual(["run_2", "run_7"]);
      const claim = taken.find(({ run }) => run.id === "run_2");
      if (!claim) throw new Error("It was not taken.");
      expect(claim).toMatchObject({ run: { attempt: 2, resumes: "run_1" }, lease: { epoch: 2 } });
      expect(await runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
      expect(await runs.inbox(claim.lease)).toMatchObject([{ id: "msg_left" }]);
      await events.append(claim.lease, [done()]);
      expect((await threads.messages(ADA, "t")).map(({ id }) => id)).toEqual(["msg_1", "msg_2", "msg_left"]);
      for (const id of ["run_5", "run_3", "run_4"]) {
        const next = await runs.claimNext(ADA, "t");
        expect(next?.run.id).toBe(id);
        if (next) await events.append(next.lease, [done()]);
      }

      expect(await deferredCalls.deliver("a".repeat(64), { result: 1 })).toMatchObject({
        state: "delivered",
        call_id: "call_1",
      });
      expect(await deferredCalls.due(5)).toMatchObject([{ thread_id: "asks", call_ids: ["call_1"] }]);
    } finally {
      await close();
    }
  });

  const madeBy = (version: 1 | 4, sql = "") =>
    inFile((file) =>
      file.exec(readFileSync(new URL(`./schema-${version}.sql`, import.meta.url), "utf8") + sql),
    );
  const made = (sql = "") => madeBy(1, sql);
  const now = () => Date.parse("2026-11-21T10:00:01.000Z");
  /** A run that was cancelled while it waited, and one that was cancelled when it had begun. */
  const CANCELLED = [
    { id: "run_withdrawn", number: 4, lastSeq: 2 },
    { id: "run_cancelled", number: 5, lastSeq: 3 },
  ].map(
    ({ id, number, lastSeq }) => `
    INSERT INTO runs SELECT owner, thread_id, '${id}', ${number}, agent, 'cancelled', 1, 'cancelled', error, usage,
      metadata, NULL, NULL, NULL, created_at, ended_at, ${lastSeq}, has_events, NULL
      FROM runs WHERE id = 'run_ended';`,
  );
  const schema = () =>
    inFile((file) => file.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all());

  test("is brought up to date when it is opened, and keeps what is in it", async () => {
    made();
    for (const time of ["first", "second"]) {
      const stores = createSqliteStores({ path: path(), now });
      const { threads, runs } = stores;
      const sandboxes = createLedger(stores.documents);
      expect(await threads.get(ADA, "trip"), time).toMatchObject({
        ...{ title: "The trip", metadata: { colour: "blue" }, status: "busy" },
      });
      expect((await threads.messages(ADA, "trip")).map(({ content }) => content)).toEqual(["one", "two"]);
      expect(await threads.state(ADA, "trip")).toEqual({ todos: ["a"] });
      expect((await runs.list(ADA, "trip", { limit: 10 })).items).toMatchObject([
        ...[{ id: "run_waiting" }, { id: "run_running" }, { id: "run_ended", status: "success" }],
      ]);
      expect(seqsOf(await readAll(stores, { owner: ADA, thread_id: "trip", run_id: "run_ended" }))).toEqual(
        upTo(5),
      );
      const [claim] = await runs.claimAbandoned(100);
      expect(claim?.run.id).toBe("run_running");
      if (claim) expect(await runs.inbox(claim.lease)).toMatchObject([{ content: "left" }]);
      expect(await sandboxes.enter(BOX, { total: 1, tenant: 1 })).toBe("entered");
      await stores.close();
    }
  });

  test("knows then which runs were begun before", async () => {
    made(CANCELLED.join(""));
    const { runs, close } = createSqliteStores({ path: path(), now });
    const order: string[] = [];
    for (let run = await runs.begun(ADA, "trip", ""); run; run = await runs.begun(ADA, "trip", run.id))
      order.push(run.id);
    expect(order).toEqual(["run_ended", "run_running", "run_cancelled"]);
    const [claim] = await runs.claimAbandoned(1);
    expect(claim?.run).toMatchObject({ id: "run_running", attempt: 2 });
    expect((await runs.begun(ADA, "trip"))?.id).toBe("run_cancelled");
    await close();
  });

  test.each([1, 4] as const)("has then the same tables as a new one: %i", async (version) => {
    await createSqliteStores({ path: path() }).close();
    const fresh = schema();
    rmSync(path());
    madeBy(version);
    await createSqliteStores({ path: path() }).close();
    expect(schema()).toEqual(fresh);
  });

  test("has then room for HTTP tools and deferred calls, also of the threads that were there", async () => {
    madeBy(4, "DROP TABLE deferred_calls; DROP TABLE http_tools; PRAGMA user_version = 3");
    const { deferredCalls, documents, close } = createSqliteStores({ path: path() });
    await deferredCalls.open({ ...CALL, thread_id: "trip" });
    await createHttpToolStore(documents, MIB).put("acme", WEATHER);
    await close();
  });

  test("keeps all that is beside runs, and has then room for items, children and resumed runs", async () => {
    madeBy(4);
    for (const time of ["first", "second"]) {
      const { threads, runs, documents, deferredCalls, items, close } = createSqliteStores({
        path: path(),
        now,
      });
      const [httpTools, sandboxes] = [createHttpToolStore(documents, MIB), createLedger(documents)];
      expect((await threads.list(ADA, { limit: 10 })).items, time).toMatchObject([
        ...[{ id: "trip", title: "The trip", status: "busy", message_count: 2 }],
      ]);
      expect((await threads.messages(ADA, "trip")).map(({ content }) => content)).toEqual(["one", "two"]);
      expect(await threads.state(ADA, "trip")).toEqual({ todos: ["a"] });
      expect(await runs.known(ADA, "trip", "k")).toMatchObject({ id: "run_ended", status: "success" });
      expect(await deferredCalls.get({ ...CALL, thread_id: "trip" })).toMatchObject({ state: "sent" });
      expect(await httpTools.list("acme")).toEqual([WEATHER]);
      expect(await sandboxes.get("sb_1")).toMatchObject({ owner: ADA, state: "running" });
      const claim = await runs.claimNext(ADA, "trip");
      expect(claim?.run).toMatchObject({ id: "run_running", attempt: time === "first" ? 2 : 3 });
      if (claim) expect(await runs.inbox(claim.lease)).toMatchObject([{ content: "left" }]);
      const note = await items.put(
        { owner: ADA, of: { thread: "trip" }, kind: "notes" },
        { key: "k", value: 1 },
      );
      expect(note?.version).toBe(time === "first" ? 1 : 2);
      const child = { id: `child-${time}`, metadata: {}, parent: { ...PARENT, thread_id: "trip" } };
      await threads.create(ADA, child);
      await runs.start(ADA, newRun(child.id, { resumes: "run_ended" }), "reject");
      expect(await runs.active(ADA, child.id)).toMatchObject({ resumes: "run_ended" });
      await close();
    }
  });

  test("is left as it is when that cannot be done", () => {
    made("CREATE TABLE sandboxes (theirs)");
    const before = schema();
    expect(() => createSqliteStores({ path: path() })).toThrow(
      expect.objectContaining({ code: "unavailable", message: expect.stringContaining(path()) }),
    );
    expect(schema()).toEqual(before);
    inFile((file) => expect(file.prepare("PRAGMA user_version").get()).toEqual({ user_version: 1 }));
  });
});

const PARENT = { thread_id: "t", run_id: "run_1", call_id: "call_1", background: false };

const BOX = {
  id: "sb_1",
  owner: ADA,
  name: "work",
  keep: { running: HOUR, container: 2 * HOUR, files: null },
};

const CALL = {
  ...{ owner: ADA, thread_id: "t", run_id: "run_1", call_id: "call_1", tool: "weather" },
  ...{ token_hash: tokenHash("token"), expires_at: "2026-11-21T10:30:00.000Z" },
};

const WEATHER: HttpTool = {
  ...{ name: "weather", description: "x", parameters: { type: "object" }, annotations: {}, agents: ["*"] },
  ...{ callback_url: "https://t.example/", headers: {}, timeout_ms: 1, idempotent: true },
  ...{ secret: "whsec_c2VjcmV0", created_at: "2026-11-21T10:00:00.000Z" },
};

test("HTTP tools and deferred calls are there when the database is opened again", async () => {
  let time = Date.parse("2026-11-21T10:00:00.000Z");
  const options = { path: path(), now: () => time };
  const stores = createSqliteStores(options);
  await createHttpToolStore(stores.documents, MIB).put("acme", WEATHER);
  await stores.threads.create(ADA, { id: "t", metadata: {} });
  const other = { ...CALL, call_id: "call_2", token_hash: tokenHash("other") };
  for (const call of [CALL, other]) {
    await stores.deferredCalls.open(call);
    await stores.deferredCalls.accept(call);
  }
  await stores.deferredCalls.deliver(other.token_hash, { result: 4 });
  expect(await stores.deferredCalls.due(10)).toMatchObject([{ call_ids: ["call_2"] }]);
  await stores.close();

  const { documents, deferredCalls, close } = createSqliteStores(options);
  const httpTools = createHttpToolStore(documents, MIB);
  expect(await httpTools.list("acme")).toEqual([WEATHER]);
  expect(await deferredCalls.get(CALL)).toEqual({ ...CALL, state: "accepted" });
  expect(await deferredCalls.get(other)).toEqual({ ...other, state: "delivered", reply: { result: 4 } });
  expect(await deferredCalls.due(10)).toEqual([]);
  time += 10_000;
  expect(await deferredCalls.due(10)).toMatchObject([{ call_ids: ["call_2"] }]);
  expect(await deferredCalls.deliver(CALL.token_hash, { result: 5 })).toMatchObject({ state: "delivered" });
  await close();
});

test("items, parents and resumed runs are there when the database is opened again", async () => {
  const stores = createSqliteStores({ path: path() });
  const begin = { messages: [userMessage("one"), userMessage("two")], state: { todos: ["a"] } };
  const thread = await stores.threads.create(ADA, { id: "t", metadata: {}, parent: PARENT, ...begin });
  const { run } = await claimed(stores, "t", { resumes: "run_0", rewind_to: begin.messages[1]?.id ?? "" });
  const shelves = [{ thread: "t" }, { agent: "helper" }].map((of) => ({
    owner: ADA,
    of,
    kind: "notes" as const,
  }));
  for (const shelf of shelves)
    for (const value of ["a", "b"]) await stores.items.put(shelf, { key: "k\ud800\u0000", value });
  const kept = await Promise.all(shelves.map((shelf) => stores.items.list(shelf)));
  await stores.close();

  const { threads, runs, items, close } = createSqliteStores({ path: path() });
  expect(await threads.get(ADA, "t")).toMatchObject({ parent: PARENT, message_count: 1 });
  expect(thread).toMatchObject({ parent: PARENT, message_count: 2 });
  expect(await threads.messages(ADA, "t")).toEqual(begin.messages.slice(0, 1));
  expect(await threads.state(ADA, "t")).toEqual(begin.state);
  expect(await runs.get(ADA, "t", run.id)).toMatchObject({ resumes: "run_0" });
  expect(await Promise.all(shelves.map((shelf) => items.list(shelf)))).toEqual(kept);
  expect(kept).toMatchObject([[{ value: "b", version: 2 }], [{ value: "b", version: 2 }]]);
  await close();
});

test("quotas are in a file beside it, opened and closed with it", async () => {
  const spent = { agent: "a", model: "m", cost: 5, usage: NO_USAGE };
  const stores = createSqliteStores({ path: path(), now: () => 0 });
  await stores.quotas.settle(ADA, "1", spent);
  await stores.close();
  await expect(stores.quotas.take(ADA, { tenant: 1, user: 1 })).rejects.toMatchObject({
    code: "unavailable",
  });
  await expect(stores.quotas.accounts(ADA)).rejects.toMatchObject({ code: "unavailable" });
  const again = createSqliteStores({ path: path(), now: () => 0 });
  expect(await again.quotas.accounts(ADA)).toMatchObject({ now: 0, user: { day: { cost: 5 } } });
  await again.close();
});

test("a file of quotas that cannot be used is named, and nothing stays open for it", async () => {
  const usage = join(dataDir, "usage.db");
  writeFileSync(usage, "not a database ".repeat(1000));
  for (let n = 0; n < 2; n++) expect(() => createSqliteStores({ path: path() })).toThrow(usage);
  rmSync(usage);
  await createSqliteStores({ path: path() }).close();
});

test("the ledger of sandboxes is as it was when the database is opened again", async () => {
  let time = 0;
  const options = { path: path(), now: () => time };
  const caps = { total: 2, tenant: 2 };
  const stores = createSqliteStores(options);
  await createLedger(stores.documents).enter(BOX, caps);
  await createLedger(stores.documents).enter({ ...BOX, id: "sb_2" }, caps);
  const seen = await createLedger(stores.documents).get("sb_2");
  const begun = seen && (await createLedger(stores.documents).begin(seen));
  if (!begun) throw new Error("It could not be begun.");
  const before = await createLedger(stores.documents).get("sb_1");
  await stores.close();

  const { documents, close } = createSqliteStores(options);
  const sandboxes = createLedger(documents);
  expect(await sandboxes.get("sb_1")).toEqual(before);
  expect(await sandboxes.get("sb_2")).toEqual(begun);
  expect(await sandboxes.enter({ ...BOX, id: "sb_3" }, caps)).toBe("tenant");
  expect(await sandboxes.settle(begun, "stopped")).toBe(true);
  time = HOUR;
  expect(await sandboxes.due(10)).toMatchObject([{ id: "sb_1", state: "running" }]);
  time = 2 * HOUR;
  expect(await sandboxes.due(10)).toMatchObject([{ id: "sb_1" }, { id: "sb_2", state: "stopped" }]);
  await close();
});

describe("a database in another process", () => {
  let child: ChildProcess | undefined;
  afterEach(() => void child?.kill("SIGKILL"));

  /** Resolves with the last number that the writer has printed, once it is at least `atLeast`. */
  async function writes(writer: ChildProcess, atLeast: number): Promise<number> {
    if (!writer.stdout) throw new Error("It has no output.");
    for await (const line of createInterface(writer.stdout)) if (Number(line) >= atLeast) return Number(line);
    throw new Error("The writer ended by itself.");
  }

  test("is refused as long as that process lives, and loses nothing when it is killed in the middle of a write", async () => {
    child = spawn(
      process.execPath,
      [fileURLToPath(new URL("./endless-writer.ts", import.meta.url)), path()],
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    const acknowledged = await writes(child, 300);
    expect(() => createSqliteStores({ path: path() })).toThrow(
      expect.objectContaining({
        code: "unavailable",
        message: expect.stringMatching(`${path()}.*in use by another process`),
      }),
    );
    child.kill("SIGKILL");
    await once(child, "exit");

    const stores = createSqliteStores({ path: path() });
    try {
      const [run] = (await stores.runs.list(ADA, "t", { limit: 10 })).items;
      const key = { owner: ADA, thread_id: "t", run_id: run?.id ?? "" };
      const { last } = await stores.events.bounds(key);
      expect(last).toBeGreaterThanOrEqual(acknowledged);
      expect([0, 8]).toContain(last % 10);
      const messages = await stores.threads.messages(ADA, "t");
      expect(messages.map(({ content }) => content)).toEqual(
        upTo(Math.floor(last / 10)).map((n) => `${10 * n - 1}`),
      );
      expect(await stores.threads.state(ADA, "t")).toEqual({ count: last - (last % 10) });

      const [claim] = await stores.runs.claimAbandoned(100);
      if (!claim) throw new Error("It was not taken over.");
      expect(claim.run).toMatchObject({ id: run?.id, attempt: 2 });
      expect(await stores.runs.inbox(claim.lease)).toMatchObject([{ content: "left" }]);
      expect(await stores.runs.renew(claim.lease)).toEqual({ stop: "interrupt" });
      await stores.events.append(claim.lease, [done()]);
      // The message that was left joins the thread before the end.
      expect(seqsOf(await readAll(stores, key))).toEqual(upTo(last + 2));
    } finally {
      await stores.close();
    }
    inFile((file) => {
      expect(file.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      expect(file.prepare("PRAGMA foreign_key_check").all()).toEqual([]);
    });
  });
});
