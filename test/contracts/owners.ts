// What operators learn of who has anything in a store.

import { describe, expect, test } from "vitest";
import type { AllStores } from "../../src/engine/stores/all-stores.ts";
import type { Owner } from "../../src/protocol/ids.ts";
import { ADA, BOB, inWorld, NEIGHBOURS, type Open, ruleTest } from "../engine/stores/fixture.ts";

const CAROL: Owner = { tenant: "other", user: "carol" };
/** The second of two has the larger bytes, and the smaller UTF-16. */
const BYTES: readonly Owner[] = ["\uffee", "\u{1f600}"].flatMap((name) => [
  { tenant: name, user: "x" },
  { tenant: "names", user: name },
]);

const makeThread = ({ threads }: AllStores, owner: Owner, id = "t") =>
  threads.create(owner, { id, metadata: {} });

/** In steps of `limit`. */
async function allOf<T>(
  read: (query: { limit: number; after: T | undefined }) => Promise<T[]>,
  limit = 2,
): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const found = await read({ limit, after: all.at(-1) });
    all.push(...found);
    if (found.length < limit) return all;
    expect(found).toHaveLength(limit);
  }
}

const byName = (a: Owner, b: Owner) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);

export function ownersContract(open: Open): void {
  const rule = ruleTest(open);
  describe("an operator's list of owners", () => {
    test("includes every owner of a thread once, in pages", () =>
      inWorld(open, async ({ stores }) => {
        const everybody = new Map(
          [CAROL, ...BYTES, ...NEIGHBOURS.flatMap(([, one, other]) => [one, other])].map((owner) => [
            JSON.stringify(owner),
            owner,
          ]),
        );
        for (const owner of everybody.values())
          for (const id of ["t", "u"]) await makeThread(stores, owner, id);
        const found = await allOf<Owner>((query) => stores.owners.list(query));
        expect(found.toSorted(byName)).toEqual([...everybody.values()].sort(byName));
        const tenants = await allOf<string>((query) => stores.owners.tenants(query));
        expect(tenants.toSorted()).toEqual(
          [...new Set([...everybody.values()].map(({ tenant }) => tenant))].sort(),
        );
        for (const tenant of tenants) {
          const users = await allOf<Owner>((query) => stores.owners.list({ ...query, tenant }), 1);
          expect(users).toEqual(found.filter((owner) => owner.tenant === tenant));
        }
      }));

    test("is empty for a tenant without users, and for an empty store", () =>
      inWorld(open, async ({ stores: { owners }, stores }) => {
        expect(await owners.list({ limit: 10 })).toEqual([]);
        expect(await owners.tenants({ limit: 10 })).toEqual([]);
        await makeThread(stores, ADA);
        expect(await owners.list({ limit: 10, tenant: "acm" })).toEqual([]);
        expect(await owners.list({ limit: 10, tenant: 'acme","a' })).toEqual([]);
      }));

    rule("misses no owner if others change between two pages", () =>
      inWorld(open, async ({ stores: { owners, threads }, stores }) => {
        const names = ["b", "d", "f", "h"];
        for (const user of names) await makeThread(stores, { tenant: "acme", user });
        const first = await owners.list({ limit: 2 });
        await threads.delete({ tenant: "acme", user: "d" }, "t");
        await makeThread(stores, { tenant: "acme", user: "a" });
        const rest = await owners.list({ limit: 10, after: first[1] });
        expect([...first, ...rest].map(({ user }) => user)).toEqual(names);
      }),
    );

    test("is in byte order of the names, even if it starts between two of them", () =>
      inWorld(open, async ({ stores: { owners }, stores }) => {
        for (const owner of BYTES) await makeThread(stores, owner);
        const [first, named, second, other] = BYTES;
        expect(await owners.list({ limit: 10 })).toEqual([named, other, first, second]);
        expect(await owners.tenants({ limit: 10 })).toEqual(["names", first?.tenant, second?.tenant]);
        expect(await owners.list({ limit: 10, after: first })).toEqual([second]);
        expect(await owners.list({ limit: 10, after: second, tenant: first?.tenant })).toEqual([]);
      }));

    rule("never includes another tenant's, wherever it starts", () =>
      inWorld(open, async ({ stores: { owners }, stores }) => {
        for (const owner of [ADA, BOB, CAROL]) await makeThread(stores, owner);
        expect(await owners.list({ limit: 10, tenant: "other", after: ADA })).toEqual([CAROL]);
        expect(await owners.list({ limit: 10, tenant: "acme", after: ADA })).toEqual([BOB]);
        expect(await owners.list({ limit: 10, tenant: "acme", after: CAROL })).toEqual([]);
      }),
    );
  });

  test("an operator finds an owner's items of agents, for any agent name", () =>
    inWorld(open, async ({ stores: { items, owners } }) => {
      const shelves = ["a", 'a","b', "a:b"].flatMap((agent) =>
        (["settings", "reflections"] as const).map((kind) => ({ owner: ADA, of: { agent }, kind })),
      );
      for (const shelf of [...shelves, { ...shelves[0], owner: BOB } as const])
        await items.put(shelf as (typeof shelves)[0], { key: "k", value: 1 });
      const found = await owners.shelves(ADA);
      expect(found.map((each) => JSON.stringify(each)).sort()).toEqual(
        shelves.map((each) => JSON.stringify(each)).sort(),
      );
      expect(await owners.shelves(CAROL)).toEqual([]);
    }));
}
