// What a store of quotas promises of the bytes that threads have stored.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ADA, BOB, ruleTest } from "../engine/stores/fixture.ts";
import { CAROL, HOUR, type OpenQuotas, quotasIn } from "../engine/stores/fixture-quotas.ts";

const NONE = { tenant: undefined, user: undefined };
const limits = (tenant?: number, user?: number) => ({ tenant, user });
const thread = (id: string, bytes: number, ms = HOUR) => ({ id, bytes, ms });

export function storedContract(open: OpenQuotas, numRuns = 25): void {
  const rule = ruleTest(open);
  const inWorld = quotasIn(open);

  describe("what is stored", () => {
    rule("counts for the user and the tenant, and is refused above either limit", () =>
      inWorld(async ({ quotas, elsewhere }) => {
        expect(await quotas.setStored(ADA, thread("a", 60), limits(100, 80))).toBeUndefined();
        expect(await elsewhere.setStored(ADA, thread("b", 30), limits(100, 80))).toBe("user");
        expect(await elsewhere.setStored(BOB, thread("a", 50), limits(100, 80))).toBe("tenant");
        expect(await elsewhere.setStored(BOB, thread("a", 40), limits(100, 80))).toBeUndefined();
        expect(await quotas.setStored(CAROL, thread("a", 80), limits(100, 80))).toBeUndefined();
        expect(await quotas.stored(ADA)).toEqual({ tenant: 100, user: 60 });
        expect(await elsewhere.stored(BOB)).toEqual({ tenant: 100, user: 40 });
      }),
    );

    rule("can always shrink, even above the limit, and expires after its time", () =>
      inWorld(async ({ quotas, advance }) => {
        await quotas.setStored(ADA, thread("a", 500), NONE);
        expect(await quotas.setStored(ADA, thread("a", 500), limits(100))).toBeUndefined();
        expect(await quotas.setStored(ADA, thread("a", 400), limits(100))).toBeUndefined();
        expect(await quotas.setStored(ADA, thread("a", 401), limits(100))).toBe("tenant");
        await quotas.setStored(ADA, thread("b", 7, 2 * HOUR), NONE);
        advance(HOUR);
        expect(await quotas.stored(ADA)).toEqual({ tenant: 7, user: 7 });
        advance(HOUR);
        expect(await quotas.stored(ADA)).toEqual({ tenant: 0, user: 0 });
      }),
    );

    const Step = fc.record({
      owner: fc.constantFrom(ADA, BOB),
      id: fc.constantFrom("a", "b", "c"),
      bytes: fc.nat(50),
      hours: fc.integer({ min: 1, max: 4 }),
      most: fc.record({
        tenant: fc.option(fc.nat(120), { nil: undefined }),
        user: fc.option(fc.nat(80), { nil: undefined }),
      }),
      pause: fc.nat(1),
    });

    test("is the sum over all threads, after any changes, refusals and deletions", () =>
      fc.assert(
        fc.asyncProperty(fc.array(Step, { maxLength: 25 }), (steps) =>
          inWorld(async ({ quotas, elsewhere, advance }) => {
            const model = new Map<string, { user: string; bytes: number; ends: number }>();
            let time = 0;
            for (const { owner, id, bytes, hours, most, pause } of steps) {
              const refused = await quotas.setStored(owner, thread(id, bytes, hours * HOUR), most);
              const key = `${owner.user} ${id}`;
              if (!refused) model.set(key, { user: owner.user, bytes, ends: time + hours });
              advance(pause * HOUR);
              time += pause;
              const left = [...model.values()].filter(({ ends }) => ends > time);
              const sum = (user?: string) =>
                left
                  .filter((each) => user === undefined || each.user === user)
                  .reduce((total, each) => total + each.bytes, 0);
              expect(await elsewhere.stored(ADA)).toEqual({ tenant: sum(), user: sum("ada") });
              expect(await quotas.stored(BOB)).toEqual({ tenant: sum(), user: sum("bob") });
            }
          }),
        ),
        { numRuns },
      ));
  });
}
