// What a store of quotas promises of limits: it grants and refuses as the rules of quotas say, after any steps before.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exceeded, hasRoom, takeRequest, withReserved } from "../../src/engine/quotas/rules.ts";
import type { Amounts, Budget as Limits, PerScope } from "../../src/engine/quotas/store.ts";
import { ADA, BOB } from "../engine/stores/fixture.ts";
import {
  HOUR,
  type OpenQuotas,
  type QuotaWorld,
  quotasIn,
  spending,
} from "../engine/stores/fixture-quotas.ts";

const Owner = fc.constantFrom(ADA, BOB);
const limits = (most: fc.Arbitrary<number>): fc.Arbitrary<PerScope<number | undefined>> =>
  fc.record({ tenant: fc.option(most, { nil: undefined }), user: fc.option(most, { nil: undefined }) });

// Whole milliseconds for each request: stores keep fractions of them with their own precision.
const Request = fc.record({
  owner: Owner,
  perMinute: limits(fc.constantFrom(1, 2, 3, 5, 8)),
  pause: fc.nat(40_000),
});

const Held = fc.record({ owner: Owner, id: fc.constantFrom("a", "b", "c", "d"), most: limits(fc.nat(4)) });

const most = (limit: number) => fc.option(fc.integer({ min: 1, max: limit }), { nil: undefined });
const Budget = fc.record({
  tokens_per_day: most(400),
  tokens_per_month: most(600),
  cost_per_day: most(30),
  cost_per_month: most(40),
});
interface Call {
  readonly owner: typeof ADA;
  readonly amounts: Amounts;
  readonly budgets: PerScope<Limits>;
  readonly ends: boolean;
  readonly pause: number;
}
const Call: fc.Arbitrary<Call> = fc.record({
  owner: Owner,
  amounts: fc.record({ tokens: fc.nat(150), cost: fc.nat(9) }),
  budgets: fc.record({ tenant: Budget, user: Budget }),
  ends: fc.boolean(),
  pause: fc.constantFrom(0, 5 * HOUR),
});

/** What chance may not find: two calls for which there is room one by one, and not together. */
const TOGETHER = (["tenant", "user"] as const).map((scope): Call[] => {
  const amounts = { tokens: 100, cost: 5 };
  const call = { owner: ADA, amounts, ends: false, pause: 0 };
  const tight = { tenant: {}, user: {}, [scope]: { tokens_per_day: 150, cost_per_month: 8 } };
  return [
    { ...call, budgets: { tenant: {}, user: {} } },
    { ...call, budgets: tight },
  ];
});

export function limitsContract(open: OpenQuotas): void {
  const inWorld = quotasIn(open);
  const holds = <Step>(
    step: fc.Arbitrary<Step>,
    play: (world: QuotaWorld, steps: readonly Step[]) => Promise<void>,
    examples: readonly Step[][] = [],
  ) =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 15 }), (steps) => inWorld((world) => play(world, steps))),
      { numRuns: 10, examples: examples.map((steps) => [steps]) },
    );

  describe("a limit, after any sequence of grants and refusals,", () => {
    test("on requests names the scope with the longest wait, and allows the next request at the stated time", () =>
      holds(Request, async ({ quotas, elsewhere, advance }, steps) => {
        const ends = new Map<string, number>();
        let now = 0;
        for (const [n, { owner, perMinute, pause }] of steps.entries()) {
          const taken = takeRequest({ tenant: ends.get("acme"), user: ends.get(owner.user) }, perMinute, now);
          const answer = await (n % 2 ? quotas : elsewhere).take(owner, perMinute);
          expect(answer).toEqual("refused" in taken ? taken.refused : undefined);
          if ("next" in taken) {
            if (taken.next.tenant !== undefined) ends.set("acme", taken.next.tenant);
            if (taken.next.user !== undefined) ends.set(owner.user, taken.next.user);
          }
          advance(pause);
          now += pause;
        }
      }));

    test("on held resources refuses new ones above it, the tenant's before the user's", () =>
      holds(Held, async ({ quotas, elsewhere }, steps) => {
        const held = new Set<string>();
        for (const { owner, id, most } of steps) {
          const name = `${owner.user} ${id}`;
          const own = [...held].filter((each) => each.startsWith(owner.user)).length;
          const full = exceeded({ tenant: held.size, user: own }, held.has(name) ? 0 : 1, most);
          const answer = await quotas.hold(owner, { thing: "runs", id, ms: HOUR }, most);
          expect(answer).toBe(full ?? (held.has(name) ? "kept" : "new"));
          if (!full) held.add(name);
          expect((await elsewhere.held(owner)).tenant.runs).toBe(held.size);
        }
      }));

    test("on tokens and cost is compared with the sum of usage and reservations", () =>
      holds(
        Call,
        async ({ quotas, elsewhere, advance }, steps) => {
          for (const [n, { owner, amounts: wanted, budgets, ends, pause }] of steps.entries()) {
            const before = await elsewhere.accounts(owner);
            const reservation = { id: `call-${n}`, amounts: wanted, ms: 100 * HOUR };
            const isGranted = hasRoom(before, budgets, wanted);
            expect(await quotas.reserve(owner, reservation, budgets)).toEqual({
              isGranted,
              accounts: isGranted ? withReserved(before, wanted) : before,
            });
            if (isGranted && ends)
              await quotas.settle(owner, reservation.id, spending({ cost: wanted.cost }));
            advance(pause);
          }
        },
        TOGETHER,
      ));
  });
}
