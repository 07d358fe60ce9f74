// What a store of quotas promises of reservations: budgets hold when many ask at once and when processes die.

import { describe, expect, test } from "vitest";
import type { Budget, QuotaStore } from "../../src/engine/quotas/store.ts";
import { ADA, BOB, ruleTest } from "../engine/stores/fixture.ts";
import {
  amounts,
  CAROL,
  HOUR,
  type OpenQuotas,
  quotasIn,
  START,
  spending,
} from "../engine/stores/fixture-quotas.ts";

const budgets = (tenant: Budget, user: Budget = {}) => ({ tenant, user });

export function reservationsContract(open: OpenQuotas): void {
  const rule = ruleTest(open);
  const inWorld = quotasIn(open);

  describe("a reservation", () => {
    let ids = 0;
    const reserve = async (
      quotas: QuotaStore,
      tokens: number,
      tenant: Budget,
      { owner = ADA, user = {}, ms = HOUR, cost = 0 } = {},
    ) => {
      const id = `call-${ids++}`;
      const reply = await quotas.reserve(
        owner,
        { id, amounts: amounts(tokens, cost), ms },
        budgets(tenant, user),
      );
      return { id, ...reply };
    };

    test("is granted while the budget allows it, and counts until it is settled", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const limit = { tokens_per_day: 1000 };
        const first = await reserve(quotas, 600, limit);
        const second = await reserve(elsewhere, 401, limit);
        const third = await reserve(elsewhere, 400, limit);
        const fourth = await reserve(quotas, 0, limit);
        expect([first, second, third, fourth].map(({ isGranted }) => isGranted)).toEqual([
          ...[true, false, true, false],
        ]);
        expect(fourth.accounts).toMatchObject({
          tenant: { day: amounts(0), reserved: amounts(1000) },
          user: { month: amounts(0), reserved: amounts(1000) },
        });
        await quotas.settle(ADA, first.id, spending());
        await elsewhere.settle(ADA, third.id, undefined);
        expect(await quotas.accounts(ADA)).toEqual({
          now: START,
          tenant: { day: amounts(100, 7), month: amounts(100, 7), reserved: amounts(0) },
          user: { day: amounts(100, 7), month: amounts(100, 7), reserved: amounts(0) },
        });
        expect((await reserve(quotas, 900, limit)).isGranted).toBe(true);
      }));

    test("that is extended lasts longer, unless it has expired", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const limit = { tokens_per_day: 1000 };
        const reserved = async () => (await quotas.accounts(ADA)).tenant.reserved;
        const [kept, lost] = [
          await reserve(quotas, 600, limit, { ms: HOUR }),
          await reserve(quotas, 30, limit, { ms: HOUR, owner: BOB }),
        ];
        advance(HOUR - 1);
        await elsewhere.extend(ADA.tenant, [kept.id, "unknown"], HOUR);
        advance(1);
        await elsewhere.extend(ADA.tenant, [lost.id], HOUR);
        expect(await reserved()).toEqual(amounts(600));
        advance(HOUR - 2);
        expect(await reserved()).toEqual(amounts(600));
        advance(1);
        expect(await reserved()).toEqual(amounts(0));
      }));

    test("of a hundred at once never exceeds the budget", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        const limit = { tokens_per_day: 1050 };
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, n) =>
            reserve(n % 2 ? quotas : elsewhere, 100, limit, { owner: n % 3 ? ADA : BOB }),
          ),
        );
        const granted = answers.filter(({ isGranted }) => isGranted);
        expect(granted).toHaveLength(10);
        await Promise.all(
          answers.map(({ id, isGranted }, n) =>
            isGranted ? quotas.settle(n % 3 ? ADA : BOB, id, spending()) : undefined,
          ),
        );
        const { tenant } = await elsewhere.accounts(BOB);
        expect(tenant.day.tokens).toBe(1000);
        expect(tenant.reserved).toEqual(amounts(0));
        expect((await reserve(quotas, 51, limit)).isGranted).toBe(false);
        expect((await reserve(quotas, 50, limit)).isGranted).toBe(true);
      }));

    rule.each([
      ["tokens_per_day", 100],
      ["tokens_per_month", 100],
      ["cost_per_day", 7],
      ["cost_per_month", 7],
    ] as const)("is checked against %s of the tenant and the user", (limit, spent) =>
      inWorld(async ({ quotas }) => {
        await quotas.settle(ADA, "before", spending());
        const granted = async (most: number, level: "tenant" | "user", owner = ADA) => {
          const [tenant, user] = level === "tenant" ? [{ [limit]: most }, {}] : [{}, { [limit]: most }];
          const { id, isGranted } = await reserve(quotas, 1, tenant, { user, owner, cost: 1 });
          await quotas.settle(owner, id, undefined);
          return isGranted;
        };
        expect(await granted(spent, "tenant")).toBe(false);
        expect(await granted(spent, "user")).toBe(false);
        expect(await granted(spent + 1, "tenant")).toBe(true);
        expect(await granted(spent + 1, "user")).toBe(true);
        expect(await granted(spent, "tenant", BOB)).toBe(false);
        expect(await granted(spent, "user", BOB)).toBe(true);
        expect(await granted(spent, "tenant", CAROL)).toBe(true);
      }),
    );

    test("of a dead process expires after its time, and its settlement still counts", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const limit = { tokens_per_day: 100 };
        const { id } = await reserve(quotas, 100, limit, { ms: 1000, cost: 3 });
        advance(999);
        expect((await reserve(elsewhere, 1, limit)).isGranted).toBe(false);
        advance(1);
        expect((await elsewhere.accounts(ADA)).user.reserved).toEqual(amounts(0));
        expect((await reserve(elsewhere, 1, limit)).isGranted).toBe(true);
        await quotas.settle(ADA, id, spending());
        expect((await quotas.accounts(ADA)).user).toMatchObject({
          day: amounts(100, 7),
          reserved: amounts(1),
        });
      }));

    test("of a process that died before the clock was set back expires after its time too", () =>
      inWorld(async ({ quotas, elsewhere, advance }) => {
        const limit = { tokens_per_day: 100 };
        const lives = await reserve(quotas, 10, limit, { ms: 1000 });
        await reserve(quotas, 90, limit, { ms: 1000 });
        advance(-5 * HOUR);
        expect((await reserve(elsewhere, 1, limit, { ms: 1000 })).isGranted).toBe(false);
        advance(999);
        await quotas.extend(ADA.tenant, [lives.id], 1000);
        advance(1);
        expect((await reserve(elsewhere, 91, limit, { ms: 1000 })).isGranted).toBe(false);
        expect((await reserve(elsewhere, 90, limit, { ms: 1000 })).isGranted).toBe(true);
      }));

    rule("made before midnight can be settled the next day", () =>
      inWorld(async ({ quotas, advance }) => {
        const { id } = await reserve(quotas, 50, { tokens_per_day: 100 });
        advance(2);
        await quotas.settle(ADA, id, spending());
        expect(await quotas.usage(ADA, 2)).toMatchObject([{ day: "2026-11-22", calls: 1 }]);
      }, Date.parse("2026-11-21T23:59:59.999Z")),
    );
  });
}
