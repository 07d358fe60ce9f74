import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { losers, Shares, sharedPlaces, verdict } from "../../../src/agent/core/shares.ts";

const TENANTS = ["a", "b", "c", "d"];

/** Tenants take and give back places in any order. */
const steps = fc.array(
  fc.record({ tenant: fc.constantFrom(...TENANTS), takes: fc.boolean(), times: fc.nat(40) }),
  { maxLength: 60 },
);
type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;
const sizes = fc.integer({ min: 1, max: 300 });

/** Carries the steps out, and calls `granted` after each place that was taken. */
function play(size: number, each: Steps, granted = (_: Held) => {}): Held {
  const shares = new Shares(sharedPlaces(size, true));
  const held = new Map<string, (() => void)[]>(TENANTS.map((tenant) => [tenant, []]));
  const counts = { shares, size, of: (tenant: string) => held.get(tenant)?.length ?? 0 };
  for (const { tenant, takes, times } of each)
    for (let n = 0; n < times; n++) {
      if (!takes) held.get(tenant)?.pop()?.();
      else if (shares.verdict(tenant) === "granted") {
        held.get(tenant)?.push(shares.take(tenant));
        granted({ ...counts, last: tenant });
      }
    }
  return { ...counts, last: "" };
}

interface Held {
  readonly shares: Shares;
  readonly size: number;
  readonly last: string;
  of(tenant: string): number;
}

const total = ({ of }: Held) => TENANTS.reduce((sum, tenant) => sum + of(tenant), 0);

describe("shared places", () => {
  test("are never given twice, and every one is counted", () => {
    fc.assert(
      fc.property(sizes, steps, (size, each) => {
        const end = play(size, each, (held) => expect(total(held)).toBeLessThanOrEqual(size));
        expect(end.shares.used).toBe(total(end));
        expect(end.shares.tenants().sort()).toEqual(TENANTS.filter((tenant) => end.of(tenant) > 0));
      }),
    );
  });

  test("include a first one for a tenant that has none, while one is free", () => {
    fc.assert(
      fc.property(sizes, steps, (size, each) => {
        const { shares } = play(size, each);
        expect(shares.verdict("new")).toBe(shares.used < size ? "granted" : "full");
      }),
    );
  });

  test("never run out because of a single tenant", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20_000 }), (size) => {
        const places = sharedPlaces(size, true);
        let own = 0;
        while (verdict(places, { own, used: own, others: 0 }) === "granted") own++;
        expect(size - own).toBeGreaterThanOrEqual(1);
        expect(verdict(places, { own, used: own, others: 0 })).toBe("over_share");
        expect(own).toBeGreaterThanOrEqual(Math.floor(size / 2));
        // Of what the one has left, several others have their first.
        const newcomers = Math.min(size - own, Math.floor(Math.log2(size - own)) + 1);
        let used = own;
        for (let others = 1; others <= newcomers; others++) {
          expect(verdict(places, { own: 0, used, others })).toBe("granted");
          for (let held = 0; verdict(places, { own: held, used, others }) === "granted"; held++) used++;
        }
      }),
    );
  });

  test("are limited to half per tenant while others hold some", () => {
    fc.assert(
      fc.property(sizes, steps, (size, each) => {
        play(size, each, (held) => {
          if (held.of(held.last) < total(held)) expect(2 * held.of(held.last)).toBeLessThanOrEqual(size);
        });
      }),
    );
  });

  test("are all available to a tenant if there can be no other", () => {
    const places = sharedPlaces(8, false);
    for (let own = 0; own < 8; own++) expect(verdict(places, { own, used: own, others: 0 })).toBe("granted");
    expect(verdict(places, { own: 8, used: 8, others: 0 })).toBe("full");
  });

  test("are refused to a tenant at its share, and reported as full to a tenant below it", () => {
    const places = sharedPlaces(16, true);
    expect(verdict(places, { own: 14, used: 14, others: 0 })).toBe("over_share");
    expect(verdict(places, { own: 8, used: 16, others: 1 })).toBe("over_share");
    expect(verdict(places, { own: 1, used: 16, others: 1 })).toBe("full");
    expect(verdict(sharedPlaces(1, true), { own: 0, used: 1, others: 1 })).toBe("full");
  });

  test("are released only once", () => {
    const shares = new Shares(sharedPlaces(4, true));
    const [first] = [shares.take("a"), shares.take("a")];
    first?.();
    first?.();
    expect(shares.used).toBe(1);
  });
});

describe("a full store", () => {
  const amounts = fc.uniqueArray(fc.tuple(fc.string(), fc.integer({ min: 1, max: 1000 })), {
    selector: ([tenant]) => tenant,
  });

  test("evicts only a tenant's own data if that tenant holds a quarter of it", () =>
    fc.assert(
      fc.property(amounts, fc.string(), fc.integer({ min: 0, max: 4000 }), (others, asking, own) => {
        const held = new Map([...others, [asking, own]]);
        const total = [...held.values()].reduce((sum, amount) => sum + amount, 0);
        const order = losers(held, asking);
        if (own > 0 && own * 4 >= total) expect(order).toEqual([asking]);
        // No tenant that holds less than it loses anything.
        else for (const tenant of order) expect(held.get(tenant)).toBeGreaterThanOrEqual(own);
        const lost = order.map((tenant) => held.get(tenant) ?? 0).slice(0, -1);
        expect(lost).toEqual(lost.toSorted((a, b) => b - a));
      }),
    ));

  test("evicts data of the tenant that holds most if another one asks", () => {
    const held = new Map([
      ...([
        ["a", 30],
        ["b", 60],
        ["c", 10],
      ] as const),
    ]);
    expect(losers(held, "c")).toEqual(["b", "a", "c"]);
    expect(losers(held, "new")).toEqual(["b", "a", "c", "new"]);
    expect(losers(held, "a")).toEqual(["a"]);
    // A quarter is already enough.
    expect(losers(new Map([...held, ["c", 30]]), "a")).toEqual(["a"]);
  });
});
