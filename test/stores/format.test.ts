// Which processes may use a store that others have used: docs/operations.md, "Upgrades".

import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { type Format, joined } from "../../src/stores/format.ts";
import { createPostgresStores } from "../../src/stores/postgres/index.ts";
import { createRedisStores, openRedisKeys } from "../../src/stores/redis/index.ts";
import { needing } from "../support/needing.ts";
import { startPostgres } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";

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

describe("the processes that may use a store", () => {
  test("are those of a new store, and those that read what is there and write what was read there", () => {
    fc.assert(
      fc.property(fc.option(release, { nil: undefined }), release, (found, own) => {
        const isRead = !found || own.version >= found.readableFrom;
        const isReadable = !found || found.version >= own.readableFrom;
        expect(joined(found, own) !== undefined).toBe(isRead && isReadable);
      }),
    );
  });

  test("are none of a release after one that was skipped, until that one was there", () => {
    fc.assert(
      fc.property(upgrade, ({ last, own }) => {
        fc.pre(last.version < own.version);
        const next = { version: own.version + 1, readableFrom: own.version };
        expect(joined(last, next)).toBeUndefined();
        expect(joined(joined(last, own), next)).toEqual(next);
      }),
    );
  });

  test("leave a record that never goes back, and that they can read themselves", () => {
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

  test("are this release and the last one, in any order of their starts and any number of them", () => {
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
  /was written by a newer version of Skein: reading it takes format 98, and this version knows .*Start the newer version/s;

needing(redis, "redis-server").describe("a Redis that a newer version has used", () => {
  const open = () => createRedisStores({ url: redis?.url ?? "" });
  const record = (format?: object) =>
    format
      ? redis?.ask("SET", "sk:{format}", JSON.stringify(format))
      : JSON.parse(redis?.ask("GET", "sk:{format}") ?? "");

  test("is used by this one, and stays as it is, if this one can read it", async () => {
    await (await open()).close();
    const { version } = record();
    record({ version: 99, readableFrom: version });
    await (await open()).close();
    expect(record()).toEqual({ version: 99, readableFrom: version });
  });

  test("is refused, and left alone, if not", async () => {
    record({ version: 99, readableFrom: 98 });
    await expect(open()).rejects.toThrow(REFUSAL);
    await expect(openRedisKeys(redis?.url ?? "")).rejects.toThrow(REFUSAL);
    expect(record()).toEqual({ version: 99, readableFrom: 98 });
  });
});

needing(redis, "redis-server").describe("a Redis whose last version cannot read what this one writes", () => {
  test("is refused, and left alone", async () => {
    const before = JSON.stringify({ version: 0, readableFrom: 0 });
    redis?.ask("SET", "sk:{format}", before);
    await expect(createRedisStores({ url: redis?.url ?? "" })).rejects.toThrow(
      /was last used by a version of Skein that knows formats up to 0.*takes format 1.*Start the version that brought format 1/s,
    );
    expect(redis?.ask("GET", "sk:{format}")).toBe(before);
  });
});

needing(postgres, "postgres").describe("a PostgreSQL that a newer version has used", () => {
  const ask = async (sql: string) => (await postgres?.ask(postgres.url, sql)) ?? [];
  const open = () => createPostgresStores({ url: postgres?.url ?? "", pool: 2 });
  const record = () =>
    ask(
      "SELECT version, value AS readable_from FROM skein.schema_version, skein.shared WHERE name = 'readable_from'",
    );
  const change = async (version: number, readableFrom: unknown) => {
    await ask(`UPDATE skein.schema_version SET version = ${version}`);
    await ask(`UPDATE skein.shared SET value = '${readableFrom}' WHERE name = 'readable_from'`);
  };

  test("is used by this one, and stays as it is, if this one can read it", async () => {
    await (await open()).close();
    const [own] = await record();
    await change(99, own?.version);
    await (await open()).close();
    expect(await record()).toEqual([{ version: 99, readable_from: String(own?.version) }]);
  });

  test("is refused, and left alone, if not", async () => {
    await change(99, 98);
    await expect(open()).rejects.toThrow(REFUSAL);
    expect(await record()).toEqual([{ version: 99, readable_from: "98" }]);
  });

  test("is used by this one if it is the first, which did not say who can read it", async () => {
    await ask("DROP SCHEMA skein CASCADE");
    await (await open()).close();
    await ask("DELETE FROM skein.shared WHERE name = 'readable_from'");
    await (await open()).close();
  });
});
