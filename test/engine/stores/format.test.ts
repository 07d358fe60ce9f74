// Which processes may use a store that others have used: docs/guides/upgrades.md.

import { copyFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { type Format, joined } from "../../../src/engine/stores/format.ts";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { createRedisStores, openRedisKeys } from "../../../src/engine/stores/redis/index.ts";
import { createSqliteStores } from "../../../src/engine/stores/sqlite/index.ts";
import { openSqliteKeyFile } from "../../../src/engine/stores/sqlite/key-file.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { startRedis } from "../../support/redis.ts";
import { temporaryFolder } from "../../support/server.ts";

/** A release may write what the last one reads, and no release can do without what it writes itself. */
const release = fc
  .tuple(fc.integer({ min: 1, max: 6 }), fc.nat(2))
  .map(([version, back]): Format => ({ version, readableFrom: Math.max(1, version - back) }));
/** The last release, and this one, which writes what the last one can read. */
const upgrade = fc.tuple(release, fc.boolean(), fc.nat()).map(([last, isRaised, drops]) => {
  const { version, readableFrom } = last;
  const dropped = drops % (version - readableFrom + 1);
  return { last, own: { version: version + (isRaised ? 1 : 0), readableFrom: readableFrom + dropped } };
});

describe("the processes that can use a store", () => {
  test("are those of a new store, and those that can read the data and write readable data", () => {
    fc.assert(
      fc.property(fc.option(release, { nil: undefined }), release, (found, own) => {
        const isRead = !found || own.version >= found.readableFrom;
        const isReadable = !found || found.version >= own.readableFrom;
        expect(joined(found, own) !== undefined).toBe(isRead && isReadable);
      }),
    );
  });

  test("exclude a release after a skipped one, until that one has been started", () => {
    fc.assert(
      fc.property(upgrade, ({ last, own }) => {
        fc.pre(last.version < own.version);
        const next = { version: own.version + 1, readableFrom: own.version };
        expect(joined(last, next)).toBeUndefined();
        expect(joined(joined(last, own), next)).toEqual(next);
      }),
    );
  });

  test("leave a record that never goes back and that they can read themselves", () => {
    fc.assert(
      fc.property(release, release, (found, own) => {
        const record = joined(found, own);
        if (!record) return;
        expect(record.version).toBeGreaterThanOrEqual(found.version);
        expect(record.readableFrom).toBeGreaterThanOrEqual(found.readableFrom);
        expect(joined(record, own)).toEqual(record);
      }),
    );
  });

  test("are this release and the previous one, started in any order and number", () => {
    fc.assert(
      fc.property(upgrade, fc.array(fc.boolean()), ({ last, own }, starts) => {
        let record: Format | undefined;
        for (const isOld of starts) {
          record = joined(record, isOld ? last : own);
          expect(record).toBeDefined();
        }
        // Once all of them are new, so is the next release.
        const next = { version: own.version + 1, readableFrom: own.version };
        expect(joined(joined(record, own), next)).toEqual(next);
      }),
    );
  });
});

const redis = await startRedis();
const postgres = await startPostgres();
afterAll(async () => {
  await redis?.close();
  await postgres?.close();
});

/** What a process says that is refused. */
const REFUSAL =
  /was written by a newer version of Skein.* Its data requires format 98, and this version supports formats up to 1.*Start that version.*another store/s;
const TOO_OLD =
  /was last used by a version of Skein that supports formats up to 0.*requires format 1.*start the version that introduced format 1/s;

const askPostgres = async (sql: string) => (await postgres?.ask(postgres.url, sql)) ?? [];

/** A store that is opened in `opens` ways, and its record of who can read it. */
interface Recorded {
  readonly opens: readonly (() => Promise<{ close(): unknown }>)[];
  read(): Promise<Format>;
  record(format: Format): Promise<unknown>;
}

const IN_REDIS: Recorded = {
  opens: [() => createRedisStores({ url: redis?.url ?? "" }), () => openRedisKeys(redis?.url ?? "")],
  read: async () => JSON.parse(redis?.ask("GET", "sk:{format}") ?? ""),
  record: async (format) => redis?.ask("SET", "sk:{format}", JSON.stringify(format)),
};

const IN_POSTGRES: Recorded = {
  opens: [() => createPostgresStores({ url: postgres?.url ?? "", pool: 2 })],
  async read() {
    const [row] = await askPostgres('SELECT version, readable_from AS "readableFrom" FROM skein.format');
    return row as unknown as Format;
  },
  record: ({ version, readableFrom }) =>
    askPostgres(`UPDATE skein.format SET version = ${version}, readable_from = ${readableFrom}`),
};

for (const [program, there, { opens, read, record }] of [
  ["redis-server", redis, IN_REDIS],
  ["postgres", postgres, IN_POSTGRES],
] as const)
  needing(there, program).describe(`a store on ${program} that another version has used`, () => {
    test("is used by this release, unchanged, if it can read the store", async () => {
      for (const open of opens) await (await open()).close();
      const { version } = await read();
      await record({ version: 99, readableFrom: version });
      for (const open of opens) await (await open()).close();
      expect(await read()).toEqual({ version: 99, readableFrom: version });
    });

    test.each<[string, Format, RegExp]>([
      ["if it cannot", { version: 99, readableFrom: 98 }, REFUSAL],
      ["if that version cannot read this one's data", { version: 0, readableFrom: 0 }, TOO_OLD],
    ])("is refused and not changed %s", async (_, format, refusal) => {
      await record(format);
      for (const open of opens) await expect(open()).rejects.toThrow(refusal);
      expect(await read()).toEqual(format);
    });
  });

needing(redis, "redis-server").describe("a Redis with contradictory keys of Skein", () => {
  const keys = () => redis?.ask("KEYS", "*").split("\n").sort();

  test.each(["nonsense", "null", "{}", '{"version":1}', '{"version":"1","readableFrom":1}', "[1,1]"])(
    "is refused and not changed with %s as its format",
    async (record) => {
      redis?.ask("FLUSHALL");
      redis?.ask("SET", "sk:{format}", record);
      const url = redis?.url ?? "";
      await expect(createRedisStores({ url })).rejects.toThrow(/does not contain a Skein format/);
      await expect(openRedisKeys(url)).rejects.toThrow(/does not contain a Skein format/);
      expect(redis?.ask("GET", "sk:{format}")).toBe(record);
      expect(keys()).toEqual(["sk:{format}"]);
    },
  );

  test("is refused and not changed without a format, unless there are only keys of other programs", async () => {
    redis?.ask("FLUSHALL");
    redis?.ask("SET", "theirs", "1");
    await (await createRedisStores({ url: redis?.url ?? "" })).close();
    expect(redis?.ask("GET", "theirs")).toBe("1");
    redis?.ask("DEL", "sk:{format}");
    const before = keys();
    await expect(createRedisStores({ url: redis?.url ?? "" })).rejects.toThrow(
      /without a record of their format/,
    );
    expect(keys()).toEqual(before);
  });
});

needing(postgres, "postgres").describe("a PostgreSQL with contradictory tables of Skein", () => {
  test("is refused and not changed if it has tables but no format", async () => {
    const url = (await postgres?.database()) ?? "";
    await (await createPostgresStores({ url, pool: 2 })).close();
    await postgres?.ask(url, "DROP TABLE skein.format");
    const tables = () =>
      postgres?.ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'skein' ORDER BY tablename");
    const before = await tables();
    await expect(createPostgresStores({ url, pool: 2 })).rejects.toThrow(
      /lacks tables of Skein's format. Use another database/,
    );
    expect(await tables()).toEqual(before);
  });

  test.each([
    ["is half made", "CREATE SCHEMA skein; CREATE TABLE skein.threads (a integer)"],
    ["is another program's", "CREATE SCHEMA skein; CREATE TABLE skein.theirs (a integer)"],
    [
      "has a format that says nothing",
      "CREATE SCHEMA skein; CREATE TABLE skein.format (version integer, readable_from integer)",
    ],
    [
      "has only a format",
      "CREATE SCHEMA skein; CREATE TABLE skein.format (version integer, readable_from integer); INSERT INTO skein.format VALUES (1, 1)",
    ],
  ])("is refused and not changed if its schema %s", async (_, sql) => {
    const url = (await postgres?.database()) ?? "";
    await postgres?.ask(url, sql);
    const all = () =>
      postgres?.ask(
        url,
        "SELECT tablename FROM pg_tables WHERE schemaname NOT LIKE 'pg%' ORDER BY tablename",
      );
    const before = await all();
    await expect(createPostgresStores({ url, pool: 2 })).rejects.toThrow(/lacks tables of Skein's format/);
    expect(await all()).toEqual(before);
  });

  test("is used if its schema is empty, next to the tables of other programs", async () => {
    const url = (await postgres?.database()) ?? "";
    await postgres?.ask(
      url,
      "CREATE SCHEMA skein; CREATE TABLE threads (a integer); INSERT INTO threads VALUES (1)",
    );
    await (await createPostgresStores({ url, pool: 2 })).close();
    expect(await postgres?.ask(url, "SELECT * FROM public.threads")).toEqual([{ a: 1 }]);
  });
});

describe("a data folder of another format", () => {
  const files = {
    "skein.db": (dir: string) => createSqliteStores({ dataDir: dir }).close(),
    "usage.db": (dir: string) => createSqliteStores({ dataDir: dir }).close(),
    "keys.db": async (dir: string) => openSqliteKeyFile(dir).close(),
  };

  test.each(Object.entries(files))("is refused, and %s does not change", async (name, open) => {
    const path = join(await temporaryFolder(), name);
    for (const [sql, refusal] of [
      [
        "CREATE TABLE theirs (a); PRAGMA user_version = 99",
        /requires format 99.*supports formats up to 1.*Start that/s,
      ],
      ["CREATE TABLE theirs (a); PRAGMA user_version = 1", /another program, or lacks tables of format 1/],
      ["CREATE TABLE theirs (a)", /another program, or lacks tables of format 1/],
    ] as const) {
      rmSync(path, { force: true });
      const file = new DatabaseSync(path);
      file.exec(sql);
      file.close();
      const before = readFileSync(path);
      await expect((async () => open(dirname(path)))()).rejects.toThrow(refusal);
      expect(readFileSync(path).equals(before)).toBe(true);
    }
  });

  test("is refused and not changed, including the log of a server that was killed", async () => {
    const folder = await temporaryFolder();
    const path = join(folder, "skein.db");
    const file = new DatabaseSync(path);
    file.exec("PRAGMA journal_mode = WAL; CREATE TABLE theirs (a); PRAGMA user_version = 99");
    file.exec("PRAGMA wal_checkpoint; INSERT INTO theirs VALUES (1)");
    const other = await temporaryFolder();
    const contents = () => readdirSync(other).map((name) => [name, readFileSync(join(other, name), "hex")]);
    for (const name of ["skein.db", "skein.db-wal"]) copyFileSync(join(folder, name), join(other, name));
    file.close();
    const before = contents();
    expect(() => createSqliteStores({ dataDir: other })).toThrow(/requires format 99/);
    expect(contents()).toEqual(before);
  });

  test("gets no new file if only its usage is of that format", async () => {
    const folder = await temporaryFolder();
    const file = new DatabaseSync(join(folder, "usage.db"));
    file.exec("CREATE TABLE theirs (a); PRAGMA user_version = 99");
    file.close();
    expect(() => createSqliteStores({ dataDir: folder })).toThrow(/usage.db.*requires format 99/);
    expect(readdirSync(folder)).toEqual(["usage.db"]);
  });
});
