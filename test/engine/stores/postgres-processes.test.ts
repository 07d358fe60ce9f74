// Processes on one PostgreSQL, as stores that share nothing but it; and a PostgreSQL that is killed, silent, or cut off.

import pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import {
  createPostgresStores,
  type PostgresStoreOptions,
} from "../../../src/engine/stores/postgres/index.ts";
import { everyCall } from "../../contracts/every-call.ts";
import { processesContract } from "../../contracts/processes.ts";
import { needing } from "../../support/needing.ts";
import { reachable } from "../../support/reachable.ts";
import { sharedPostgres } from "../../support/shared-stores.ts";
import { ADA, claimed, delta, done, keyOf, message, newRun, note, readAll, seqsOf, upTo } from "./fixture.ts";

const postgres = await sharedPostgres();
afterAll(() => postgres?.close());

/** Short, so that a lease is over while a test looks. */
const LEASE_MS = 500;
const unavailable = { code: "unavailable" };

let url = "";
let opened: AllStores[] = [];
beforeEach(async () => {
  url = (await postgres?.database()) ?? "";
});
afterEach(async () => {
  await Promise.all(opened.map((each) => each.close()));
  opened = [];
});
async function open(more: Partial<PostgresStoreOptions> = {}): Promise<AllStores> {
  const stores = await createPostgresStores({ url, leaseMs: LEASE_MS, pool: 4, ...more });
  opened.push(stores);
  return stores;
}

needing(postgres, "postgres").describe("processes on one PostgreSQL", () => processesContract(open));

needing(postgres, "postgres").describe("two processes on one PostgreSQL", () => {
  let one: AllStores;
  let two: AllStores;
  beforeEach(async () => {
    [one, two] = await Promise.all([open(), open()]);
  });

  test("find a due document that one writes while the other looks for due ones", async () => {
    const plans = { kind: "plans", tenant: "acme" };
    const write = { key: "first", seen: undefined, body: "x", due: 0 };
    await one.documents.write(plans, [write], { version: "vfirst" });
    const writer = new pg.Client({ connectionString: url });
    await writer.connect();
    onTestFinished(() => writer.end());
    await writer.query(`SET search_path = skein; BEGIN; UPDATE document_turns SET at = at;
      INSERT INTO documents SELECT collection, '"second"', version, body, due, owner, thread_id, created_at, updated_at FROM documents`);
    const options = { limit: 10, holdMs: 60_000 };
    const picked = two.documents.pick("plans", options);
    const waits =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await expect.poll(async () => (await writer.query(waits)).rowCount).toBeGreaterThan(0);
    await writer.query("COMMIT");
    const keys = [...(await picked), ...(await one.documents.pick("plans", options))].map(({ key }) => key);
    expect(keys.toSorted()).toEqual(["first", "second"]);
  });

  test("miss no output after their connections were cut", async () => {
    const claim = await claimed(one, "t");
    const reading = readAll(two, keyOf(claim));
    for (const n of upTo(6)) {
      await postgres?.cut(n % 2 ? "messages" : "commands");
      await one.events.append(claim.lease, [delta(`${n}`), n % 2 ? note(`${n}`) : message(`${n}`)]);
    }
    await one.events.append(claim.lease, [done()]);
    expect(seqsOf(await reading)).toEqual(upTo(13));
    expect(await two.threads.messages(ADA, "t")).toHaveLength(3);
  });

  test("create one schema if they start at once", async () => {
    url = (await postgres?.database()) ?? "";
    const all = await Promise.all(upTo(5).map(() => open()));
    expect(new Set(all.map(({ shared }) => shared?.secret)).size).toBe(1);
  });

  test("create the schema even while they are too busy to respond immediately", async () => {
    url = (await postgres?.database()) ?? "";
    const stalled = new Int32Array(new SharedArrayBuffer(4));
    const busy = setInterval(() => Atomics.wait(stalled, 0, 0, LEASE_MS / 2));
    try {
      await open({ deadlineMs: 60_000 });
    } finally {
      clearInterval(busy);
    }
  });
});

needing(postgres, "postgres").describe("an unavailable PostgreSQL", () => {
  /** A busy machine answers within it, and it is over while a test looks. */
  const deadlineMs = 2_000;

  test("and returns has the whole output, and readers miss nothing", async () => {
    const stores = await open({ leaseMs: 60_000 });
    const claim = await claimed(stores, "t");
    const reading = upTo(5).map(() => readAll(stores, keyOf(claim)));
    const said: Promise<void>[] = [];
    for (let n = 0; n < 3; n++) {
      for (const m of upTo(100))
        said.push(stores.events.append(claim.lease, [m % 10 ? delta(`${m}`) : message(`${m}`)]));
      await postgres?.kill();
      await postgres?.start();
    }
    await Promise.all(said);
    await stores.events.append(claim.lease, [done()]);
    for (const entries of await Promise.all(reading)) expect(seqsOf(entries)).toEqual(upTo(301));
    expect(await stores.threads.messages(ADA, "t")).toHaveLength(30);
  });

  describe.each(["away", "silent"])("and is %s", (how) => {
    const leave = () => (how === "away" ? postgres?.kill() : postgres?.pause());
    const back = () => (how === "away" ? postgres?.start() : postgres?.resume());

    test("is unavailable for a limited time, and used again when it is back", async () => {
      // The tables are made by one that has more time.
      await open();
      const stores = await open({ deadlineMs, leaseMs: deadlineMs });
      const claim = await claimed(stores, "t");
      await stores.events.append(claim.lease, [note("one")]);
      await leave();
      const began = performance.now();
      const results = await Promise.allSettled([
        ...[
          stores.events.append(claim.lease, [message("two")]),
          stores.events.append(claim.lease, [delta("x")]),
        ],
        ...[stores.runs.start(ADA, newRun("u"), "reject"), stores.threads.get(ADA, "t"), stores.ping()],
      ]);
      expect(performance.now() - began).toBeLessThan(60_000);
      for (const each of results) expect(each).toMatchObject({ status: "rejected", reason: unavailable });
      await back();
      await reachable(stores);
      expect(await stores.threads.get(ADA, "t")).toMatchObject({ id: "t" });
    });

    test("is awaited by every call inside a run, and by no other", async () => {
      // The tables are made by one that has more time.
      await open();
      const stores = await open({ deadlineMs, leaseMs: 60_000 });
      const { lease } = await claimed(stores, "t");
      await stores.events.append(lease, [note("one")]);
      await leave();
      const calls = everyCall(stores, lease);
      const inside = stores.inRun(() => Promise.allSettled(calls.map((call) => call())));
      const outside = await Promise.allSettled([stores.threads.get(ADA, "t"), stores.quotas.held(ADA)]);
      for (const each of outside) expect(each).toMatchObject({ status: "rejected", reason: unavailable });
      await back();
      for (const [index, result] of (await inside).entries())
        expect(result, `${calls[index]}`).not.toMatchObject({ reason: unavailable });
    });
  });

  test("takes no run from a process that waited for it", async () => {
    // Shorter than the silence, which lasts until the deadline; and longer than a busy machine takes for the last calls.
    const times = { leaseMs: 8_000, deadlineMs: 10_000 };
    const [one, two] = [await open(times), await open(times)];
    const { lease } = await claimed(one, "t");
    await postgres?.pause();
    const waiting = one.runs.renew(lease).catch(() => {});
    const looking = two.runs.claimAbandoned(1).catch(() => []);
    await waiting;
    await postgres?.resume();
    expect(await looking).toEqual([]);
    await one.runs.renew(lease);
    expect(await two.runs.claimAbandoned(1)).toEqual([]);
    await one.events.append(lease, [done()]);
  });
});
