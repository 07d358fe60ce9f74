// What older versions wrote is there once the database was brought up to date.

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { createLedger } from "../../src/backends/ledger.ts";
import { createSqliteStores } from "../../src/stores/sqlite/index.ts";
import { createHttpToolStore } from "../../src/tools/http/store.ts";
import { ADA, done, newRun, readAll, seqsOf, upTo } from "./fixture.ts";
import { BOX, CALL, MIB, PARENT, temporaryDatabase, WEATHER } from "./sqlite-file.ts";

const { inFile, path } = temporaryDatabase();

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

  test("keeps everything that is beside runs, and has then room for items, children and resumed runs", async () => {
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
