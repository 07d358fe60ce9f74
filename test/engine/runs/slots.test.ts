import fc from "fast-check";
import { expect, test } from "vitest";
import { sharedPlaces } from "../../../src/agent/core/shares.ts";
import type { Claim } from "../../../src/agent/core/stores.ts";
import { Slots } from "../../../src/engine/runs/slots.ts";

/** A claim of nothing but its tenant, which is all that slots look at. */
const claimOf = (tenant: string) => ({ lease: { owner: { tenant, user: "ada" } } }) as Claim;

/** Slots whose runs last until they are ended. */
function open(size: number) {
  const running: { tenant: string; end: (next: "free" | "claim") => void }[] = [];
  const slots = new Slots(sharedPlaces(size, true), {
    work: (claim) => new Promise((end) => void running.push({ tenant: claim.lease.owner.tenant, end })),
    onFree() {},
  });
  return {
    slots,
    running,
    of: (tenant: string) => running.filter((each) => each.tenant === tenant).length,
    start(tenant: string): boolean {
      const slot = slots.take(tenant);
      slot?.execute(claimOf(tenant));
      return slot !== undefined;
    },
    /** Claims runs of `tenant`, of which any number waits. */
    claim(tenant: string): number {
      const claiming = slots.claim(32);
      const count = claiming.except.includes(tenant) ? 0 : claiming.count;
      claiming.execute(Array.from({ length: count }, () => claimOf(tenant)));
      return count;
    },
    async end(index: number): Promise<void> {
      running.splice(index, 1)[0]?.end("claim");
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

const step = fc.record({
  tenant: fc.constantFrom("a", "b", "c"),
  does: fc.constantFrom("start", "claim", "end"),
  times: fc.integer({ min: 1, max: 30 }),
});

test("executes no more runs than slots, and a tenant gets no more than half while others have some", () =>
  fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 64 }),
      fc.array(step, { maxLength: 20 }),
      async (size, steps) => {
        const { slots, running, of, start, claim, end } = open(size);
        for (const { tenant, does, times } of steps)
          for (let n = 0; n < times; n++) {
            const before = of(tenant);
            if (does === "end") await end(n % Math.max(1, running.length));
            else if (does === "start") start(tenant);
            else claim(tenant);
            expect(running.length).toBeLessThanOrEqual(size);
            if (of(tenant) > before && of(tenant) < running.length)
              expect(2 * of(tenant)).toBeLessThanOrEqual(size);
          }
        while (running.length > 0) await end(0);
        slots.release();
        await slots.idle;
      },
    ),
    { numRuns: 60 },
  ));

test("a tenant's first run finds a slot, however many runs of another tenant are waiting", () =>
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 300 }), fc.boolean(), (size, claims) => {
      const { start, claim, of } = open(size);
      if (claims) while (claim("flood") > 0);
      else while (start("flood"));
      expect(of("flood")).toBeGreaterThanOrEqual(Math.floor(size / 2));
      expect(start("other")).toBe(true);
    }),
  ));

test("a slot that is reserved for waiting runs is not taken by a new one", async () => {
  const { slots, start, claim, end } = open(2);
  expect([start("a"), start("b"), start("c")]).toEqual([true, true, false]);
  await end(0);
  expect(start("c")).toBe(false);
  expect(claim("c")).toBe(1);
  await end(0);
  slots.release();
  expect(start("d")).toBe(true);
});
