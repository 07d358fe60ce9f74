// Any steps of users, of processes that look for due documents and of a clock that jumps: every store answers as memory does.

import fc from "fast-check";
import { expect, test } from "vitest";
import { type ClaimedDocument, claimDue } from "../../src/agent/core/document-claims.ts";
import { searchDocuments } from "../../src/agent/core/document-search.ts";
import type { Documents, DocumentWrite, ListedCollection } from "../../src/agent/core/documents.ts";
import { createMemoryStores } from "../../src/engine/stores/memory/index.ts";
import { inWorld, type Open } from "../engine/stores/fixture.ts";

const KEYS = ["a", "a/b", "a/c", "b", "b/1", "-", "Z"] as const;
const key = fc.constantFrom(...KEYS);
const tenant = fc.constantFrom("x", "y");
const text = fc.constantFrom(
  ...["", "one", "two ÄRGER", "\u0000 zero", '"{}[]', "x".repeat(200)].map((each) => JSON.stringify(each)),
);
const limit = fc.integer({ min: 1, max: 5 });
const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

const Write = fc.record({
  key,
  body: optional(text),
  /** From the time of the write on; null: never. */
  due: fc.option(fc.integer({ min: -20, max: 200 }), { nil: null }),
  /** Another one was seen than there is. */
  isOld: fc.nat(9).map((n) => n === 0),
});

const Step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant("write" as const),
      tenant,
      writes: fc.uniqueArray(Write, { minLength: 0, maxLength: 3, selector: (each) => each.key }),
      limit: optional(fc.nat(6)),
      bytes: optional(fc.nat(300)),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant("claim" as const), leaseMs: fc.constantFrom(1, 10, 100) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("finish" as const),
      nth: fc.nat(3),
      due: fc.option(fc.nat(60), { nil: null }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant("wait" as const), ms: fc.integer({ min: -30, max: 60 }) }),
  },
  fc.record({
    what: fc.constant("trim" as const),
    tenant,
    ms: optional(fc.nat(80)),
    count: optional(fc.nat(5)),
  }),
  fc.record({ what: fc.constant("due" as const), tenant, limit, aheadMs: optional(fc.constantFrom(0, 50)) }),
  fc.record({
    what: fc.constant("page" as const),
    tenant,
    order: fc.constantFrom("key" as const, "created" as const, "updated" as const),
    prefix: optional(fc.constantFrom("", "a/", "b", "none")),
    limit,
    isNext: fc.boolean(),
  }),
  fc.record({
    what: fc.constant("search" as const),
    tenant,
    q: fc.constantFrom("", "o", "ärger", "zero"),
    prefix: optional(fc.constantFrom("a", "b/")),
    limit,
  }),
);
type Steps = readonly (typeof Step extends fc.Arbitrary<infer T> ? T : never)[];

let plays = 0;

/** What each step was answered, without what no store has alike: versions, and in which order tenants have their turns. */
async function play(documents: Documents, advance: (ms: number) => void, steps: Steps): Promise<unknown[]> {
  const id = ++plays;
  let writes = 0;
  // A file may keep what was played before.
  const kind = `steps${id}`;
  const of = (name: string): ListedCollection => ({ kind, tenant: name });
  const begun = (await documents.read(of("x"), [])).now;
  const claims: ClaimedDocument[] = [];
  const cursors = new Map<string, string | undefined>();
  const nameOf = (each: ClaimedDocument) => `${each.collection.tenant}/${each.key} ${each.body}`;
  const listed = ({ items, next_cursor }: Awaited<ReturnType<Documents["page"]>>) => ({
    items: items.map(({ version: _, created_at, updated_at, ...each }) => ({
      ...each,
      created: created_at - begun,
      updated: updated_at - begun,
    })),
    hasMore: next_cursor !== undefined,
  });

  const isClaiming = steps.some(({ what }) => what === "claim");
  const answers: unknown[] = [];
  for (const step of steps) answers.push(await answerOf(step));
  for (const name of ["x", "y"])
    answers.push(
      listed(await documents.page(of(name), { order: "key", limit: 10 })),
      await documents.size(of(name)),
    );
  return answers;

  async function answerOf(step: Steps[number]): Promise<unknown> {
    // After a clock is set back, each store finds due documents again when it comes to them.
    if (step.what === "wait") return advance(isClaiming ? Math.abs(step.ms) : step.ms);
    if (step.what === "claim") {
      const found = await claimDue(documents, kind, { limit: 50, leaseMs: step.leaseMs });
      claims.push(...found.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1)));
      return found.map(nameOf).toSorted();
    }
    if (step.what === "finish") {
      const held = claims.at(-1 - step.nth);
      if (!held) return undefined;
      const { now } = await documents.read(held.collection, []);
      const write = {
        key: held.key,
        seen: held.version,
        body: held.body,
        due: step.due === null ? null : now + step.due,
      };
      return documents.write(held.collection, [write], { version: `vf${id}n${++writes}` });
    }
    const collection = of(step.tenant);
    if (step.what === "write") {
      const { found, now } = await documents.read(
        collection,
        step.writes.map((each) => each.key),
      );
      const all = step.writes.map(
        ({ key: name, body, due, isOld }, at): DocumentWrite => ({
          key: name,
          seen: isOld ? "vold" : found[at]?.version,
          body,
          due: due === null ? null : now + due,
        }),
      );
      const { limit: most, bytes } = step;
      return documents.write(collection, all, { version: `vw${id}n${++writes}`, limit: most, bytes });
    }
    if (step.what === "trim")
      return documents.trim(collection, {
        ...(step.ms === undefined ? {} : { ms: step.ms }),
        ...(step.count === undefined ? {} : { count: step.count }),
      });
    if (step.what === "due")
      return (await documents.due(collection, step.limit, step.aheadMs)).map(
        (each) => `${each.key} ${each.body}`,
      );
    if (step.what === "search") {
      const { prefix, q } = step;
      return listed(
        await searchDocuments(documents, collection, {
          q,
          textOf: ({ body }) => body,
          limit: step.limit,
          ...(prefix === undefined ? {} : { prefix }),
        }),
      );
    }
    const { order, prefix } = step;
    const place = `${step.tenant} ${order}`;
    const cursor = step.isNext ? cursors.get(place) : undefined;
    const page = await documents.page(collection, {
      ...{ order, limit: step.limit, cursor },
      ...(order === "key" && prefix !== undefined ? { prefix } : {}),
    });
    cursors.set(place, page.next_cursor);
    return listed(page);
  }
}

export function documentStepsContract(open: Open, numRuns = 20): void {
  test("any steps with documents have the same results as in memory", () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.array(Step, { maxLength: 40 }), { maxLength: 6 }), async (all) => {
        const played = async (each: Open) => {
          const answers: unknown[] = [];
          await inWorld(each, async ({ stores, advance }) => {
            for (const steps of all) answers.push(await play(stores.documents, advance, steps));
          });
          return answers;
        };
        const expected = await played(async (options) => createMemoryStores(options));
        expect(await played(open)).toEqual(expected);
      }),
      { numRuns },
    ));
}
