// What lies between a server and its PostgreSQL: a pooler, and the rights that a database administrator gives.

import { afterAll, expect, onTestFinished, test } from "vitest";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { needing } from "../../support/needing.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { startPostgres } from "../../support/postgres.ts";
import { ADA, claimed, delta, done, keyOf, newRun, note, readAll, seqsOf, upTo } from "./fixture.ts";

const postgres = await startPostgres();
const pooled = postgres && hasPgBouncer() ? postgres : undefined;
afterAll(() => postgres?.close());
const server = () => postgres ?? expect.fail("There was a PostgreSQL a moment ago.");

/** How long stores repeat a write that PostgreSQL refuses for now. */
const REFUSED_MS = 5_000;

async function open(url: string, deadlineMs = 60_000) {
  const stores = await createPostgresStores({ url, deadlineMs });
  onTestFinished(() => stores.close());
  return stores;
}

needing(pooled, "pgbouncer").describe("a pooler in front of PostgreSQL", () => {
  const pooler = async (mode: "session" | "transaction") => {
    const started = await startPgBouncer(await server().database(), mode);
    onTestFinished(() => started.close());
    return started.url;
  };

  test("with sessions serves two processes", async () => {
    const url = await pooler("session");
    const [one, two] = [await open(url), await open(url)];
    const claim = await claimed(one, "t");
    const reading = readAll(two, keyOf(claim));
    await one.events.append(claim.lease, [delta("x"), note("y"), done()]);
    expect(seqsOf(await reading)).toEqual(upTo(3));
  });

  test("without sessions is refused at startup, with the setting to change, even after others have used it", async () => {
    const url = await pooler("transaction");
    for (const _ of upTo(3))
      await expect(createPostgresStores({ url })).rejects.toMatchObject({
        code: "config_invalid",
        message: expect.stringContaining("`pool_mode = session`"),
      });
  });
});

needing(postgres, "postgres").describe("a user of PostgreSQL", () => {
  /** A database in which the user `name` may create nothing. */
  async function strict(name: string, ...grants: string[]): Promise<string> {
    const url = await server().database();
    const { pathname, host } = new URL(url);
    const database = pathname.slice(1);
    await server().ask(url, `CREATE USER ${name}; REVOKE CREATE ON DATABASE ${database} FROM PUBLIC`);
    for (const grant of grants) await server().ask(url, grant);
    return `postgres://${name}@${host}${pathname}`;
  }

  test("whose user cannot create anything uses the schema that was created for it", async () => {
    const stores = await open(await strict("made", "CREATE SCHEMA skein AUTHORIZATION made"));
    const { lease } = await claimed(stores, "t");
    await stores.events.append(lease, [done()]);
    await stores.ping();
  });

  test("whose user can only use another user's tables needs no more rights", async () => {
    const url = await strict("guest");
    const admin = new URL(url);
    admin.username = "postgres";
    await (await createPostgresStores({ url: admin.href })).close();
    for (const grant of [
      "GRANT USAGE ON SCHEMA skein TO guest",
      "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA skein TO guest",
      "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA skein TO guest",
    ])
      await server().ask(admin.href, grant);
    const { lease } = await claimed(await open(url), "t");
    expect(lease.epoch).toBe(1);
  });

  test("with serializable transactions by default handles writes to many threads at once", async () => {
    const url = await server().database();
    const database = new URL(url).pathname.slice(1);
    await server().ask(url, `ALTER DATABASE ${database} SET default_transaction_isolation = 'serializable'`);
    const stores = await open(url);
    const claims = await Promise.all(upTo(16).map((thread) => claimed(stores, `t${thread}`)));
    await Promise.all(claims.map(({ lease }) => stores.events.append(lease, [delta("x"), done()])));
    expect(seqsOf(await readAll(stores, keyOf(claims[0] ?? expect.fail())))).toEqual(upTo(2));
  });

  test("whose encoding cannot hold all characters is refused at startup", async () => {
    const url = new URL(await server().database());
    await server().ask(url.href, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    url.pathname = "/latin";
    await expect(createPostgresStores({ url: url.href })).rejects.toMatchObject({
      code: "config_invalid",
      message: expect.stringMatching(/encoding LATIN1.*ENCODING 'UTF8'/),
    });
  });

  test("whose user cannot create a schema shows the statement for its administrator", async () => {
    await expect(createPostgresStores({ url: await strict("stranger") })).rejects.toMatchObject({
      code: "config_invalid",
      message: expect.stringMatching(/`stranger`.*CREATE SCHEMA skein AUTHORIZATION "stranger"/),
    });
  });

  test("is ready only while it accepts writes", async () => {
    const url = await server().database();
    const stores = await open(url, REFUSED_MS);
    const set = async (value: string) => {
      const name = new URL(url).pathname.slice(1);
      const { ask, url: beside } = server();
      await ask(beside, `ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`);
      await ask(beside, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`);
    };
    await stores.ping();
    await set("on");
    const refused = { code: "unavailable", message: expect.stringContaining("is not accepting writes") };
    await expect.poll(() => stores.ping().catch((error: unknown) => error)).toMatchObject(refused);
    await expect(stores.runs.start(ADA, newRun("u"), "reject")).rejects.toMatchObject(refused);
    await set("off");
    await expect.poll(() => stores.ping().then(() => "ready", String)).toBe("ready");
  });

  test("whose connection ends reports PostgreSQL's reason on the next one: that it accepts no writes", async () => {
    const url = await server().database();
    const stores = await open(url, REFUSED_MS);
    const { ask, url: beside } = server();
    await ask(
      beside,
      `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`,
    );
    // Ends the connection that waits for this table, which a new run reads and nothing else does.
    const ended = ask(
      url,
      `SET TRANSACTION READ WRITE;
      LOCK TABLE skein.inbox;
      DO $$ DECLARE waiting integer; BEGIN
        LOOP
          SELECT pid INTO waiting FROM pg_locks WHERE relation = 'skein.inbox'::regclass AND NOT granted;
          EXIT WHEN waiting IS NOT NULL;
          PERFORM pg_sleep(0.01);
        END LOOP;
        PERFORM pg_terminate_backend(waiting);
      END $$`,
    );
    const isLocked =
      "SELECT 1 FROM pg_locks WHERE relation = 'skein.inbox'::regclass AND granted AND mode = 'AccessExclusiveLock'";
    await expect.poll(() => ask(url, isLocked)).toHaveLength(1);
    await expect(stores.runs.start(ADA, newRun("u"), "reject")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("is not accepting writes"),
    });
    await ended;
  });
});
