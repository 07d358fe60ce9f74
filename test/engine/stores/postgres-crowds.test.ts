// Many calls at once on one PostgreSQL: those that wait for each other, and those that must not wait for them.

import pg from "pg";
import { afterAll, expect, onTestFinished, test } from "vitest";
import type { AllStores } from "../../../src/engine/stores/all-stores.ts";
import {
  createPostgresStores,
  type PostgresStoreOptions,
} from "../../../src/engine/stores/postgres/index.ts";
import { lockNumber } from "../../../src/engine/stores/postgres/locks.ts";
import { ownerText, tenantText } from "../../../src/engine/stores/row-keys.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { ADA, newRun, upTo } from "./fixture.ts";
import { amounts, HOUR } from "./fixture-quotas.ts";
import { tablesOf } from "./postgres-tables.ts";

const NEIGHBOUR = { tenant: "neighbour", user: "nell" };
/** More than the pool has connections. */
const CROWD = 20;
/** More than anything takes that need not wait. */
const DEADLINE_MS = 60_000;

const postgres = await startPostgres();
const tables = await tablesOf(postgres);
afterAll(async () => {
  await tables?.close();
  await postgres?.close();
});

async function opened(url = "", options: Partial<PostgresStoreOptions>) {
  const stores = await createPostgresStores({ url, pool: 4, ...options });
  onTestFinished(stores.close);
  return stores;
}

/** Takes a lock as another process does, until `release`. */
async function locked(url: string | undefined, number: string) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`BEGIN; SELECT pg_advisory_xact_lock(${number})`);
  return { release: () => client.query("ROLLBACK") };
}

const reserve = ({ quotas }: AllStores, n: number, owner = ADA) =>
  quotas.reserve(owner, { id: `call-${n}`, amounts: amounts(1), ms: HOUR }, { tenant: {}, user: {} });

const CROWDS = [
  {
    crowd: "the budget of a tenant",
    lock: lockNumber("quotas", ADA.tenant),
    call: reserve,
  },
  {
    crowd: "the queue of a tenant",
    lock: `hashtextextended('room ${tenantText(ADA.tenant)}', 0)`,
    call: ({ runs }: AllStores, n: number) => runs.enqueue(ADA, newRun(`t${n}`), "queue"),
  },
  {
    crowd: "a thread",
    lock: lockNumber("thread", ownerText(ADA), "t"),
    call: ({ runs }: AllStores) => runs.claimNext(ADA, "t"),
  },
];

needing(postgres, "postgres").describe("a crowd on one PostgreSQL", () => {
  test.each(CROWDS)("that waits for $crowd does not block other users", async ({ lock, call }) => {
    const url = await tables?.empty();
    const stores = await opened(url, { deadlineMs: DEADLINE_MS });
    const other = await locked(url, lock);
    const crowd = Promise.allSettled(upTo(CROWD).map((n) => call(stores, n)));
    await stores.threads.create(NEIGHBOUR, { id: "t", metadata: {} });
    expect(await reserve(stores, 0, NEIGHBOUR)).toMatchObject({ isGranted: true });
    await other.release();
    for (const each of await crowd) expect(each).toMatchObject({ status: "fulfilled" });
  });

  test("gets its turns, even if all of them take longer than PostgreSQL may be silent", async () => {
    const url = (await postgres?.database()) ?? "";
    // The tables are made by one that has more time.
    await opened(url, { deadlineMs: 60_000 });
    const stores = await opened(url, { deadlineMs: 4_000 });
    await postgres?.ask(
      url,
      `CREATE FUNCTION skein.linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END';
      CREATE TRIGGER linger BEFORE INSERT ON skein.reserved FOR EACH ROW EXECUTE FUNCTION skein.linger()`,
    );
    const crowd = await Promise.allSettled(upTo(30).map((n) => reserve(stores, n)));
    for (const each of crowd) expect(each).toMatchObject({ status: "fulfilled", value: { isGranted: true } });
    expect((await stores.quotas.accounts(ADA)).tenant.reserved).toEqual(amounts(30));
  });
});
