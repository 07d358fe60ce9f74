// What a store of quotas promises of what was used: it is counted by days and months of UTC, and told to its own user.

import { describe, expect, test } from "vitest";
import { NO_USAGE } from "../../src/agent/core/message.ts";
import { MAX_ROWS, MAX_USERS, OTHER, USAGE_DAYS, type UsageRow } from "../../src/engine/quotas/store.ts";
import { ADA, BOB } from "../engine/stores/fixture.ts";
import {
  amounts,
  CAROL,
  DAY,
  type OpenQuotas,
  type QuotaWorld,
  quotasIn,
  spending,
} from "../engine/stores/fixture-quotas.ts";

export function usedContract(open: OpenQuotas): void {
  const inWorld = quotasIn(open);

  describe("usage", () => {
    const spentAt = async ({ quotas, setTime }: QuotaWorld, at: string, later: string) => {
      setTime(Date.parse(at));
      await quotas.settle(ADA, "x", spending());
      setTime(Date.parse(later));
      const { tenant, user } = await quotas.accounts(ADA);
      expect(tenant).toEqual(user);
      return [user.day.tokens, user.month.tokens];
    };

    test.each([
      ["within a day", "2026-11-22T00:00:00.000Z", "2026-11-22T23:59:59.999Z", [100, 100]],
      ["at midnight", "2026-11-22T23:59:59.999Z", "2026-11-23T00:00:00.000Z", [0, 100]],
      ["at the end of a month", "2026-11-30T23:59:59.999Z", "2026-12-01T00:00:00.000Z", [0, 0]],
      ["at the end of a year", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00.000Z", [0, 0]],
      ["on a leap day", "2028-02-28T23:59:59.999Z", "2028-02-29T00:00:00.000Z", [0, 100]],
      ["after a leap day", "2028-02-29T12:00:00.000Z", "2028-03-01T00:00:00.000Z", [0, 0]],
      ["after February", "2027-02-28T12:00:00.000Z", "2027-03-01T00:00:00.000Z", [0, 0]],
      ["on the same day a year later", "2026-11-22T12:00:00.000Z", "2027-11-22T12:00:00.000Z", [0, 0]],
    ])("is counted by UTC days and months: %s", (_, at, later, expected) =>
      inWorld(async (world) => {
        expect(await spentAt(world, at, later)).toEqual(expected);
      }),
    );

    test.each([
      ["by two days", "2026-11-24T12:00:00.000Z", [0, 100]],
      ["by two months", "2027-01-22T12:00:00.000Z", [0, 0]],
      ["by a year", "2027-11-22T12:00:00.000Z", [0, 0]],
    ])("from future days and months does not count after the clock was set back %s", (_, at, expected) =>
      inWorld(async (world) => {
        expect(await spentAt(world, at, "2026-11-22T12:00:00.000Z")).toEqual(expected);
        const [, month = 0] = expected;
        for (const day of ["2026-11-22T12:00:00.000Z", "2026-11-23T12:00:00.000Z"])
          expect((await spentAt(world, day, day))[0]).toBe(100);
        expect((await world.quotas.accounts(ADA)).tenant.month.tokens).toBe(month + 200);
      }),
    );

    test("every day has its own name", () =>
      inWorld(async ({ quotas, setTime }) => {
        // Through a century's end that has no leap day, and an ordinary one.
        for (const start of ["2099-12-01T05:00:00.000Z", "2100-02-20T05:00:00.000Z"]) {
          for (let day = 0; day < 40; day++) {
            const time = Date.parse(start) + day * DAY;
            setTime(time);
            await quotas.settle(ADA, "x", spending());
            expect((await quotas.usage(ADA, 1)).map((row) => row.day)).toEqual([
              new Date(time).toISOString().slice(0, 10),
            ]);
          }
        }
      }));

    test("is listed by day, agent and model, newest day first, for its own user", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const odd = 'a "b" \\ ü';
        await quotas.settle(ADA, "1", spending({ agent: odd }));
        await quotas.settle(ADA, "2", spending({ model: "m:2" }));
        advance(DAY);
        await elsewhere.settle(ADA, "3", spending());
        await quotas.settle(ADA, "4", spending({ cost: 10 ** 15 }));
        await quotas.settle(BOB, "5", spending());
        const one = { ...spending().usage, cost: 7, calls: 1 };
        expect(await elsewhere.usage(ADA, 2)).toEqual([
          {
            ...{ day: "2026-11-22", agent: "helper", model: "scripted:test", calls: 2, cost: 10 ** 15 + 7 },
            ...{ input_tokens: 120, output_tokens: 80, cache_read_tokens: 20, cache_write_tokens: 10 },
          },
          { ...one, day: "2026-11-21", agent: odd, model: "scripted:test" },
          { ...one, day: "2026-11-21", agent: "helper", model: "m:2" },
        ]);
        expect(await quotas.usage(ADA, 1)).toHaveLength(1);
        expect(await quotas.usage(CAROL, 100)).toEqual([]);
      }));

    test("is marked if part of it is an estimate, only for its day, model and user", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const { usage } = spending();
        await quotas.settle(ADA, "1", spending());
        await quotas.settle(ADA, "2", spending({ usage: { ...usage, estimated: true } }));
        await elsewhere.settle(ADA, "3", spending());
        await quotas.settle(ADA, "4", spending({ model: "m:2" }));
        await quotas.settle(BOB, "5", spending({ model: "m:2" }));
        advance(DAY);
        await quotas.settle(ADA, "6", spending());
        const marks = (rows: readonly UsageRow[]) =>
          rows.map(({ day, model, estimated }) => [day, model, estimated]);
        const expected = [
          ["2026-11-22", "scripted:test", undefined],
          ["2026-11-21", "m:2", undefined],
          ["2026-11-21", "scripted:test", true],
        ];
        expect(marks(await elsewhere.usage(ADA, 2))).toEqual(expected);
        const { rows, users } = await quotas.tenantUsage(ADA.tenant, 2);
        expect(marks(rows)).toEqual(expected);
        expect(users.map(({ user, estimated }) => [user, estimated])).toEqual([
          [ADA.user, true],
          [BOB.user, undefined],
        ]);
        advance(USAGE_DAYS * DAY);
        await quotas.settle(ADA, "7", spending());
        expect(await quotas.usage(ADA, USAGE_DAYS)).toMatchObject([{ calls: 1 }]);
        expect(marks(await quotas.usage(ADA, USAGE_DAYS))).toMatchObject([
          [expect.any(String), "scripted:test", undefined],
        ]);
      }));

    test("is kept for a hundred days, for its user and its tenant", () =>
      inWorld(async ({ quotas, advance }) => {
        await quotas.settle(ADA, "1", spending());
        advance((USAGE_DAYS - 1) * DAY);
        await quotas.settle(ADA, "2", spending());
        expect(await quotas.usage(ADA, 1000)).toHaveLength(2);
        advance(DAY);
        await quotas.settle(ADA, "3", spending());
        expect((await quotas.usage(ADA, 1000)).map(({ day }) => day)).toEqual(["2027-03-01", "2027-02-28"]);
        advance((USAGE_DAYS - 1) * DAY);
        await quotas.settle(BOB, "4", spending());
        const { rows, users } = await quotas.tenantUsage(ADA.tenant, 1000);
        expect(rows).toMatchObject([{ calls: 1 }, { calls: 1 }]);
        expect(users.map(({ user }) => user).sort()).toEqual(["ada", "bob"]);
        advance(DAY);
        await quotas.settle(BOB, "5", spending());
        expect((await quotas.tenantUsage(ADA.tenant, 1000)).users).toMatchObject([{ user: "bob" }]);
      }));

    test("does not grow with the number of given names, and none of it is lost", () =>
      inWorld(async ({ quotas, advance }) => {
        for (let n = 0; n < MAX_ROWS + 10; n++) await quotas.settle(ADA, "x", spending({ model: `m:${n}` }));
        await quotas.settle(ADA, "x", spending({ model: "m:0" }));
        const rows = await quotas.usage(ADA, 1);
        expect(rows).toHaveLength(MAX_ROWS + 1);
        expect(rows.find(({ model }) => model === "m:0")?.calls).toBe(2);
        expect(rows.find(({ agent }) => agent === OTHER)).toMatchObject({ model: OTHER, calls: 10 });
        advance(DAY);
        await quotas.settle(ADA, "x", spending({ model: "m:100" }));
        expect(await quotas.usage(ADA, 1)).toMatchObject([{ model: "m:100" }]);
      }));

    test("of a tenant is listed by day, agent and model, and by user in order of cost", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        await quotas.settle(ADA, "1", spending());
        await elsewhere.settle(BOB, "2", spending({ cost: 30 }));
        advance(DAY);
        await quotas.settle(ADA, "3", spending());
        await quotas.settle(CAROL, "4", spending({ cost: 1000 }));
        const { usage } = spending();
        const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens } = usage;
        const twice = {
          ...{ input_tokens: 2 * input_tokens, output_tokens: 2 * output_tokens },
          ...{ cache_read_tokens: 2 * cache_read_tokens, cache_write_tokens: 2 * cache_write_tokens },
        };
        const row = { agent: "helper", model: "scripted:test" };
        expect(await elsewhere.tenantUsage(ADA.tenant, 2)).toEqual({
          rows: [
            { ...row, ...usage, day: "2026-11-22", calls: 1, cost: 7 },
            { ...row, ...twice, day: "2026-11-21", calls: 2, cost: 37 },
          ],
          users: [
            { ...usage, user: "bob", calls: 1, cost: 30 },
            { ...twice, user: "ada", calls: 2, cost: 14 },
          ],
        });
        expect((await quotas.tenantUsage(ADA.tenant, 1)).users).toMatchObject([{ user: "ada", calls: 1 }]);
        expect(await quotas.tenantUsage("no one's", 100)).toEqual({ rows: [], users: [] });
      }));

    test("of a tenant does not grow with its users or the given names, and none of it is lost", () =>
      inWorld(async ({ quotas, advance }) => {
        const as = (user: string) => ({ tenant: ADA.tenant, user });
        for (let n = 0; n < MAX_USERS + 10; n++)
          await quotas.settle(as(`u${n}`), "x", spending({ model: `m:${n}` }));
        await quotas.settle(as("u0"), "x", spending());
        await quotas.settle(as("late"), "x", spending({ cost: 1000 }));
        const { rows, users } = await quotas.tenantUsage(ADA.tenant, 1);
        expect(rows).toHaveLength(MAX_ROWS + 1);
        expect(users).toHaveLength(MAX_USERS + 1);
        expect(users[0]).toMatchObject({ user: "u0", calls: 2 });
        expect(users.at(-1)).toMatchObject({ calls: 11, cost: 1070 });
        expect(users.at(-1)).not.toHaveProperty("user");
        const calls = (all: readonly { calls: number }[]) => all.reduce((sum, each) => sum + each.calls, 0);
        expect([calls(rows), calls(users)]).toEqual([MAX_USERS + 12, MAX_USERS + 12]);
        advance(DAY);
        for (let n = 10; n < 20; n++) await quotas.settle(as(`v${n}`), "x", spending({ cost: n }));
        const later = (await quotas.tenantUsage(ADA.tenant, 2)).users;
        expect(later).toHaveLength(MAX_USERS + 1);
        expect(later[0]).toMatchObject({ user: "v19", cost: 19 });
        expect(calls(later)).toBe(MAX_USERS + 22);
      }));

    test("is counted for many calls that end at once", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            (n % 2 ? quotas : elsewhere).settle(
              ADA,
              `${n}`,
              spending({ usage: { ...NO_USAGE, output_tokens: n } }),
            ),
          ),
        );
        expect((await quotas.accounts(ADA)).tenant.month).toEqual(amounts(4950, 700));
        expect(await quotas.usage(ADA, 1)).toMatchObject([{ calls: 100, output_tokens: 4950 }]);
      }));
  });
}
