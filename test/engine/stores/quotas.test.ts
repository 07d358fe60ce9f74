import { statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../../src/agent/core/message.ts";
import type { QuotaStore } from "../../../src/engine/quotas/store.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { openMemoryQuotas, openSqliteQuotas } from "../../../src/engine/stores/sqlite/quotas.ts";
import type { Owner } from "../../../src/protocol/ids.ts";
import { quotasContract } from "../../contracts/quotas.ts";
import { temporaryFolder } from "../../support/server.ts";
import { ADA } from "./fixture.ts";

const SPENT = { agent: "a", model: "m", cost: 5, usage: { ...NO_USAGE, input_tokens: 10 } };
const UNLIMITED = { tenant: undefined, user: undefined };
/** Stands still: what is spent before midnight is not of the day, or of the month, after it. */
const noon = () => Date.parse("2026-11-21T12:00:00.000Z");

describe("in memory", () => {
  const open = async (now: () => number) => {
    const { quotas, close } = createMemoryStores({ now });
    return { quotas, close: () => void close() };
  };
  quotasContract(Object.assign(open, { rules: true as const }));

  describe("with more names than it can keep", () => {
    const owners = ["ada", "bob", "carol", "dan"].map((user) => ({ tenant: user, user }));
    const [ada, bob, carol, _dan] = owners as [Owner, Owner, Owner, Owner];
    // Each owner is two names: a tenant and a user.
    const most = (count: number, now = noon) => openMemoryQuotas(now, 2 * count);
    const spend = (tokens: number) => ({ ...SPENT, usage: { ...NO_USAGE, input_tokens: tokens } });
    const spent = async (quotas: QuotaStore) =>
      Promise.all(owners.map(async (owner) => (await quotas.accounts(owner)).user.month.tokens));

    test("it drops those that have spent least, not those that were counted long ago", async () => {
      const { quotas, close } = most(3);
      for (const [at, tokens] of [5000, 10, 300, 20].entries()) {
        const owner = owners[at] ?? ada;
        await quotas.settle(owner, owner.user, spend(tokens));
      }
      expect(await spent(quotas)).toEqual([5000, 0, 300, 20]);
      expect(await quotas.usage(bob, 1)).toEqual([]);
      close();
    });

    test("a crowd of names that spend little never evicts a large spending", async () => {
      const { quotas, close } = most(10);
      await quotas.settle(ada, "1", spend(5000));
      for (let n = 0; n < 500; n++) await quotas.settle({ tenant: `t${n}`, user: "u" }, `${n}`, spend(10));
      expect(await spent(quotas)).toEqual([5000, 0, 0, 0]);
      close();
    });

    test("it drops those of past months first, even the largest", async () => {
      let time = Date.parse("2026-11-30T12:00:00.000Z");
      const { quotas, close } = most(2, () => time);
      await quotas.settle(ada, "1", spend(5000));
      time += 86_400_000;
      await quotas.settle(bob, "2", spend(10));
      await quotas.settle(carol, "3", spend(20));
      expect(await spent(quotas)).toEqual([0, 10, 20, 0]);
      expect(await quotas.usage(ada, 100)).toEqual([]);
      close();
    });
  });
});

/** Lets writes to a table of the file fail until the returned function is called. */
function breakWrites(dir: string, table: string): () => void {
  const file = new DatabaseSync(join(dir, "usage.db"));
  const fail = "BEGIN SELECT RAISE(ABORT, 'the disk is broken'); END";
  file.exec(`CREATE TRIGGER stuck BEFORE INSERT ON ${table} ${fail}`);
  return () => {
    file.exec("DROP TRIGGER stuck");
    file.close();
  };
}

describe("in a file", () => {
  quotasContract(async (now) => openSqliteQuotas(await temporaryFolder(), now));

  test("data that counts for a budget is written immediately, for other processes too, and the rest on closing", async () => {
    const dir = await temporaryFolder();
    const one = openSqliteQuotas(dir, noon);
    const other = openSqliteQuotas(dir, noon);
    const inputOf = async () => (await other.quotas.usage(ADA, 1)).map(({ input_tokens }) => input_tokens);
    await one.quotas.reserve(
      ADA,
      { id: "call", amounts: { tokens: 10, cost: 5 }, ms: 60_000 },
      { tenant: {}, user: {} },
    );
    await one.quotas.settle(ADA, "call", SPENT);
    expect(await inputOf()).toEqual([10]);
    await one.quotas.settle(ADA, "without a budget", SPENT);
    one.close();
    expect(await inputOf()).toEqual([20]);
    other.close();
  });

  test("usage, held resources and reservations outlast the process", async () => {
    const dir = await temporaryFolder();
    const first = openSqliteQuotas(dir, noon);
    await first.quotas.settle(ADA, "1", SPENT);
    await first.quotas.hold(ADA, { thing: "threads", id: "1", ms: 10 ** 14 }, UNLIMITED);
    await first.quotas.reserve(
      ADA,
      { id: "2", amounts: { tokens: 3, cost: 1 }, ms: 60_000 },
      { tenant: {}, user: {} },
    );
    first.close();
    const { quotas, close } = openSqliteQuotas(dir, noon);
    expect((await quotas.accounts(ADA)).user).toEqual({
      day: { tokens: 10, cost: 5 },
      month: { tokens: 10, cost: 5 },
      reserved: { tokens: 3, cost: 1 },
    });
    expect((await quotas.held(ADA)).user.threads).toBe(1);
    close();
  });

  test("a failed write is logged with the reason and repeated later", async () => {
    const dir = await temporaryFolder();
    const failures: object[] = [];
    const logger = { info() {}, warn: (details: object) => void failures.push(details), error() {} };
    const { quotas, close } = openSqliteQuotas(dir, noon, logger);
    const cure = breakWrites(dir, "usage");
    await quotas.settle(ADA, "r1", SPENT);
    await expect.poll(() => failures).toHaveLength(1);
    expect(failures).toMatchObject([{ err: { message: expect.stringContaining("the disk is broken") } }]);
    cure();
    expect(await quotas.usage(ADA, 1)).toMatchObject([{ calls: 1 }]);
    close();
    expect(failures).toHaveLength(1);
  });

  test("spending that could not be written is counted once when it is settled again", async () => {
    const dir = await temporaryFolder();
    const { quotas, close } = openSqliteQuotas(dir, noon);
    const amounts = { tokens: 10, cost: 5 };
    await quotas.reserve(ADA, { id: "call", amounts, ms: 60_000 }, { tenant: {}, user: {} });
    const cure = breakWrites(dir, "usage");
    await expect(quotas.settle(ADA, "call", SPENT)).rejects.toMatchObject({ code: "unavailable" });
    cure();
    await quotas.settle(ADA, "call", SPENT);
    expect(await quotas.usage(ADA, 1)).toMatchObject([{ calls: 1 }]);
    close();
  });

  test("spending is not lost with a reservation that could not be written", async () => {
    const dir = await temporaryFolder();
    const { quotas, close } = openSqliteQuotas(dir, noon);
    const cure = breakWrites(dir, "reserved");
    await quotas.settle(ADA, "unreserved", SPENT);
    const amounts = { tokens: 10, cost: 5 };
    const reserving = quotas.reserve(ADA, { id: "call", amounts, ms: 60_000 }, { tenant: {}, user: {} });
    await expect(reserving).rejects.toMatchObject({ code: "unavailable" });
    cure();
    expect(await quotas.usage(ADA, 1)).toMatchObject([{ calls: 1 }]);
    close();
  });

  test("stored bytes of other tenants' users are deleted after their time, even if they never return", async () => {
    const dir = await temporaryFolder();
    let time = 0;
    const { quotas, close } = openSqliteQuotas(dir, () => time);
    const stored = { id: "t", bytes: 10, ms: 1000 };
    for (const tenant of ["a", "b", "c"]) await quotas.setStored({ tenant, user: "u" }, stored, UNLIMITED);
    time = 1000;
    for (let n = 0; n < 3; n++) await quotas.setStored(ADA, stored, UNLIMITED);
    close();
    const file = new DatabaseSync(join(dir, "usage.db"), { readOnly: true });
    expect(file.prepare("SELECT tenant FROM stored").all()).toEqual([{ tenant: '["acme"]' }]);
    expect(file.prepare("SELECT count(*) AS n FROM stored_sums").get()).toEqual({ n: 2 });
    file.close();
  });

  test("no one else on the machine can read it", async () => {
    const dir = await temporaryFolder();
    const { quotas, close } = openSqliteQuotas(dir, noon);
    await quotas.settle(ADA, "1", SPENT);
    for (const name of ["usage.db", "usage.db-wal"]) expect(statSync(join(dir, name)).mode & 0o077).toBe(0);
    close();
  });
});
