import { statSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import type { Owner } from "../../src/core/ids.ts";
import { NO_USAGE } from "../../src/core/message.ts";
import { createMemoryStores } from "../../src/stores/memory/index.ts";
import { openMemoryQuotas, openSqliteQuotas } from "../../src/stores/sqlite/quotas.ts";
import { quotasContract } from "../contracts/quotas.ts";
import { temporaryFolder } from "../support/server.ts";
import { ADA } from "./fixture.ts";

const SPENT = { agent: "a", model: "m", cost: 5, usage: { ...NO_USAGE, input_tokens: 10 } };
const UNLIMITED = { tenant: undefined, user: undefined };

describe("in memory", () => {
  quotasContract(async (now) => {
    const { quotas, close } = createMemoryStores({ now });
    return { quotas, close: () => void close() };
  });

  test("names without end take no room without end: the one not counted for the longest time is forgotten", async () => {
    const { quotas, close } = openMemoryQuotas(Date.now, 3);
    const day = async (owner: Owner) => (await quotas.accounts(owner)).user.day.tokens;
    const [bob, carol] = ["bob", "carol"].map((user) => ({ tenant: ADA.tenant, user }));
    if (!bob || !carol) throw new Error("Two names give two owners.");
    for (const owner of [ADA, bob, ADA, carol]) await quotas.settle(owner, owner.user, SPENT);
    expect([await day(ADA), await day(bob), await day(carol)]).toEqual([20, 0, 10]);
    expect((await quotas.accounts(carol)).tenant.day.tokens).toBe(40);
    expect([await quotas.usage(ADA, 1), await quotas.usage(bob, 1)].map(({ length }) => length)).toEqual([
      1, 0,
    ]);
    close();
  });
});

describe("in a file", () => {
  quotasContract(async (now) => openSqliteQuotas(await temporaryFolder(), now));

  test("what was used, held and reserved outlasts the process", async () => {
    const dir = await temporaryFolder();
    const first = openSqliteQuotas(dir);
    await first.quotas.settle(ADA, "1", SPENT);
    await first.quotas.hold(ADA, { thing: "threads", id: "1", ms: 10 ** 14 }, UNLIMITED);
    await first.quotas.reserve(
      ADA,
      { id: "2", amounts: { tokens: 3, cost: 1 }, ms: 60_000 },
      { tenant: {}, user: {} },
    );
    first.close();
    const { quotas, close } = openSqliteQuotas(dir);
    expect((await quotas.accounts(ADA)).user).toEqual({
      day: { tokens: 10, cost: 5 },
      month: { tokens: 10, cost: 5 },
      reserved: { tokens: 3, cost: 1 },
    });
    expect((await quotas.held(ADA)).user.threads).toBe(1);
    close();
  });

  test("no one else on the machine can read it", async () => {
    const dir = await temporaryFolder();
    const { quotas, close } = openSqliteQuotas(dir);
    await quotas.settle(ADA, "1", SPENT);
    for (const name of ["usage.db", "usage.db-wal"]) expect(statSync(join(dir, name)).mode & 0o077).toBe(0);
    close();
  });

  test("a file that is another program's, or a newer version's, is refused and left alone", async () => {
    const dir = await temporaryFolder();
    const path = join(dir, "usage.db");
    const text = "no database, though long enough to be taken for one".repeat(40);
    await writeFile(path, text);
    expect(() => openSqliteQuotas(dir)).toThrow(/cannot be reached: file is not a database/);
    expect(await readFile(path, "utf8")).toBe(text);
    await rm(path);
    const newer = new DatabaseSync(path);
    newer.exec("CREATE TABLE held (id TEXT); PRAGMA user_version = 99");
    newer.close();
    expect(() => openSqliteQuotas(dir)).toThrow(/newer version/);
  });

  test("what is asked after the end is unavailable", async () => {
    const { quotas, close } = openSqliteQuotas(await temporaryFolder());
    close();
    close();
    await expect(quotas.accounts(ADA)).rejects.toMatchObject({ code: "unavailable" });
    await expect(quotas.settle(ADA, "1", SPENT)).rejects.toMatchObject({ code: "unavailable" });
  });
});
