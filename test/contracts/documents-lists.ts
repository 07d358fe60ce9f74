// What every store promises of documents that are listed in order, are claimed when they are due, or are a log.

import { describe, expect, test } from "vitest";
import { type ClaimedDocument, claimDue, finish } from "../../src/agent/core/document-claims.ts";
import { append, entriesOf } from "../../src/agent/core/document-log.ts";
import { type DocumentSearch, SEARCHED, searchDocuments } from "../../src/agent/core/document-search.ts";
import {
  type Documents,
  type ListedCollection,
  type ListedDocument,
  type ListOrder,
  type OwnedCollection,
  retain,
  TRIMMED,
} from "../../src/agent/core/documents.ts";
import { ADA, BOB, inWorld, type Open, ruleTest, upTo } from "../engine/stores/fixture.ts";

const PLANS = { kind: "plans", tenant: "acme" } as const;
const AUDIT = { kind: "audit", tenant: "acme" } as const;
const NEVER = new AbortController().signal;

let writes = 0;
async function put(
  documents: Documents,
  key: string,
  { body = key, due = null, of = PLANS }: { body?: string; due?: number | null; of?: ListedCollection } = {},
): Promise<void> {
  const [found] = (await documents.read(of, [key])).found;
  const write = { key, seen: found?.version, body, due };
  expect(await documents.write(of, [write], { version: `vput${++writes}` })).toBe("written");
}

async function drop(documents: Documents, key: string, of: ListedCollection = PLANS): Promise<void> {
  const [found] = (await documents.read(of, [key])).found;
  const write = { key, seen: found?.version, body: undefined };
  expect(await documents.write(of, [write], { version: `vdrop${++writes}` })).toBe("written");
}

/** Page by page. */
async function all(
  documents: Documents,
  order: ListOrder,
  limit = 2,
  { prefix, of = PLANS }: { prefix?: string; of?: ListedCollection } = {},
): Promise<ListedDocument[]> {
  const found: ListedDocument[] = [];
  for (let cursor: string | undefined; ; ) {
    const query = { order, limit, cursor, ...(prefix === undefined ? {} : { prefix }) };
    const page = await documents.page(of, query);
    expect(page.items.length).toBeLessThanOrEqual(limit);
    found.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === undefined) return found;
  }
}
const keysOf = (found: readonly { readonly key: string }[]) => found.map(({ key }) => key);

const documentsIn =
  (open: Open) => (body: (documents: Documents, advance: (ms: number) => void) => Promise<void>) =>
    inWorld(open, ({ stores, advance }) => body(stores.documents, advance));

function orderAndSearchContract(open: Open): void {
  const withDocuments = documentsIn(open);

  describe("a list of documents", () => {
    test("is in order of the keys, with or without a prefix, and covers one collection", () =>
      withDocuments(async (documents) => {
        for (const key of ["b/2", "a", "b/10", "b", "c:1", "b/1", "B"]) await put(documents, key);
        await put(documents, "b/3", { of: { kind: "plans", tenant: "other" } });
        expect(keysOf(await all(documents, "key"))).toEqual(["B", "a", "b", "b/1", "b/10", "b/2", "c:1"]);
        expect(keysOf(await all(documents, "key", 1, { prefix: "b/" }))).toEqual(["b/1", "b/10", "b/2"]);
        expect(await all(documents, "key", 5, { prefix: "none" })).toEqual([]);
      }));

    test("is in order of creation or change, newest first", () =>
      withDocuments(async (documents, advance) => {
        for (const key of ["a", "b", "c", "d"]) {
          await put(documents, key);
          if (key !== "b") advance(1);
        }
        await put(documents, "a", { body: "new" });
        expect(keysOf(await all(documents, "created", 1))).toEqual(["d", "c", "b", "a"]);
        const changed = await all(documents, "updated", 1);
        expect(keysOf(changed)).toEqual(["a", "d", "c", "b"]);
        const [first, second] = changed;
        expect(first).toMatchObject({ body: "new", version: expect.stringMatching(/^v/) });
        expect((first?.updated_at ?? 0) - (first?.created_at ?? 0)).toBe(3);
        expect(second?.updated_at).toBe(second?.created_at);
      }));

    test("includes every document that is always there once, even if others change between its pages", () =>
      withDocuments(async (documents, advance) => {
        for (const n of upTo(6)) {
          await put(documents, `k${n}`);
          advance(1);
        }
        for (const order of ["key", "created"] as const) {
          const first = await documents.page(PLANS, { order, limit: 3 });
          await drop(documents, first.items.at(-1)?.key ?? "");
          await put(documents, "a0");
          await put(documents, "zz");
          const rest = await documents.page(PLANS, { order, limit: 10, cursor: first.next_cursor });
          const seen = keysOf([...first.items, ...rest.items]).filter((key) => key.startsWith("k"));
          expect(seen.toSorted()).toEqual([...new Set(seen)].toSorted());
          expect(seen.length).toBe(order === "key" ? 6 : 5);
        }
      }));

    test("refuses another list's cursor, and explains why", () =>
      withDocuments(async (documents) => {
        for (const key of ["a", "b"]) await put(documents, key);
        const { next_cursor: cursor = "" } = await documents.page(PLANS, { order: "key", limit: 1 });
        const forged = ["created a\u0000", "key a"].map((place) => `${"9".repeat(30)} ${place}`);
        const encoded = forged.map((text) => Buffer.from(text).toString("base64url"));
        for (const wrong of [cursor, "nonsense", ...encoded])
          await expect(
            documents.page(PLANS, { order: "created", limit: 1, cursor: wrong }),
          ).rejects.toMatchObject({
            code: "invalid_request",
            message: expect.stringContaining(wrong),
          });
      }));
  });

  describe("searching documents", () => {
    const TEXTS = {
      "ada/1": "Quarterly report, draft",
      "ada/2": "Reporting of ÄRGER in Zürich",
      "ada/3": "re-port",
      "bob/1": "The report of Bob",
      "bob/2": "",
    };
    const search = (documents: Documents, q: string, more: Partial<DocumentSearch> = {}) =>
      searchDocuments(documents, PLANS, { q, textOf: ({ body }) => body, limit: 10, ...more });
    const fill = async (documents: Documents, advance: (ms: number) => void) => {
      for (const [key, body] of Object.entries(TEXTS)) {
        await put(documents, key, { body });
        advance(1);
      }
    };

    test.each([
      ["a word, in any case, that begins words", "REPORT", ["bob/1", "ada/2", "ada/1"]],
      ["several words, in any order", "draft quart", ["ada/1"]],
      ["letters with marks, however they are composed", "a\u0308rger zu\u0308r", ["ada/2"]],
      ["parts of a word with a hyphen", "port re", ["ada/3"]],
      ["no part within a word", "port of", []],
      ["signs of a query language as what they are: none", 'report" OR *', []],
      ["nothing", " - ", ["bob/2", "bob/1", "ada/3", "ada/2", "ada/1"]],
    ])("finds %s, last written first", (_, q, expected) =>
      withDocuments(async (documents, advance) => {
        await fill(documents, advance);
        expect(keysOf((await search(documents, q)).items)).toEqual(expected);
      }),
    );

    test("covers one owner's documents, page by page, with each match once", () =>
      withDocuments(async (documents, advance) => {
        await fill(documents, advance);
        const found: string[] = [];
        for (let cursor: string | undefined; ; ) {
          const page = await search(documents, "re", { prefix: "ada/", limit: 1, cursor });
          found.push(...keysOf(page.items));
          cursor = page.next_cursor;
          if (cursor === undefined) break;
        }
        expect(found).toEqual(["ada/1", "ada/2", "ada/3"]);
      }));

    test("returns every match once, even if another document is deleted meanwhile", () =>
      withDocuments(async (documents, advance) => {
        await fill(documents, advance);
        const deleting: Documents = {
          ...documents,
          async page(...query) {
            const page = await documents.page(...query);
            if ((await documents.read(PLANS, ["ada/1"])).found[0]) await drop(documents, "ada/1");
            return page;
          },
        };
        const first = await search(deleting, "re", { prefix: "", limit: 2 });
        const rest = await search(documents, "re", { prefix: "", cursor: first.next_cursor });
        const found = keysOf([...first.items, ...rest.items]).filter((key) => key !== "ada/1");
        expect(found).toEqual(["ada/2", "ada/3", "bob/1"]);
      }));

    test("yields to other work with texts of any content", () =>
      withDocuments(async (documents) => {
        // Each of these characters becomes eighteen.
        for (const n of upTo(60)) await put(documents, `k${n}`, { body: "\ufdfa".repeat(4_096) });
        let isOver = false;
        let turns = 0;
        const counting = (async () => {
          for (; !isOver; turns++) await new Promise(setImmediate);
        })();
        const page = { items: await all(documents, "key", 100) };
        const read = turns;
        const words = upTo(16).map((n) => "\u0635".repeat(n));
        await search({ ...documents, page: async () => page }, words.join(" "), { limit: 1 });
        isOver = true;
        await counting;
        expect(turns - read).toBeGreaterThan(2);
      }));

    test("reads a limited number of documents per call, and continues after them", () =>
      withDocuments(async (documents) => {
        const keys = upTo(SEARCHED + 20).map((n) => `k${String(n).padStart(5, "0")}`);
        const all = keys.map((key) => ({ key, seen: undefined, body: "other" }));
        await documents.write(PLANS, all, { version: "vmany" });
        await put(documents, "z", { body: "wanted" });
        const first = await search(documents, "wanted", { prefix: "" });
        expect(first.items).toEqual([]);
        const rest = await search(documents, "wanted", { prefix: "", cursor: first.next_cursor });
        expect(keysOf(rest.items)).toEqual(["z"]);
        expect(rest.next_cursor).toBeUndefined();
      }));
  });
}

export function documentListsContract(open: Open): void {
  const rule = ruleTest(open);
  const withDocuments = documentsIn(open);
  if (open.rules) orderAndSearchContract(open);

  test("a list of documents never contains a key without its prefix, wherever a cursor starts", () =>
    withDocuments(async (documents) => {
      for (const key of ["ada/1", "ada/2", "b", "bob/1", "bob/2", "cy/1"]) await put(documents, key);
      const pages = await Promise.all(upTo(6).map((limit) => documents.page(PLANS, { order: "key", limit })));
      const cursors = pages.flatMap(({ next_cursor }) => next_cursor ?? []);
      expect(cursors).toHaveLength(5);
      const behind = async (place: { cursor: string } | { after: string }) =>
        keysOf((await documents.page(PLANS, { order: "key", prefix: "bob/", limit: 10, ...place })).items);
      expect(await Promise.all(cursors.map((cursor) => behind({ cursor })))).toEqual([
        ...Array(3).fill(["bob/1", "bob/2"]),
        ["bob/2"],
        [],
      ]);
      expect(await behind({ after: "a" })).toEqual(["bob/1", "bob/2"]);
      expect(await behind({ after: "cy" })).toEqual([]);
      const search = { q: "ada", prefix: "bob/", textOf: ({ key }: ListedDocument) => key, limit: 5 };
      for (const cursor of cursors)
        expect((await searchDocuments(documents, PLANS, { ...search, cursor })).items).toEqual([]);
    }));

  describe("a log of documents", () => {
    rule("returns its entries newest first, in the order in which they were appended", () =>
      withDocuments(async (documents, advance) => {
        for (const n of upTo(5)) {
          await append(documents, AUDIT, `${n}`);
          if (n === 2) advance(1);
        }
        const first = await entriesOf(documents, AUDIT, { limit: 3 });
        const rest = await entriesOf(documents, AUDIT, { limit: 3, cursor: first.next_cursor });
        expect([...first.items, ...rest.items].map(({ body }) => body)).toEqual(["5", "4", "3", "2", "1"]);
        expect(rest.next_cursor).toBeUndefined();
      }),
    );

    rule("knows its number of entries and bytes", () =>
      withDocuments(async (documents) => {
        expect(await documents.size(AUDIT)).toEqual({ documents: 0, bytes: 0 });
        for (const body of ["a", "ä", ""]) await append(documents, AUDIT, body);
        expect(await documents.size(AUDIT)).toEqual({ documents: 3, bytes: 3 });
      }),
    );

    test("drops its oldest entries first, even if that takes several calls", () =>
      withDocuments(async (documents, advance) => {
        const keys = upTo(TRIMMED + 20).map((n) => `k${String(n).padStart(5, "0")}`);
        const all = keys.map((key) => ({ key, seen: undefined, body: "x" }));
        await documents.write(AUDIT, all.slice(0, -20), { version: "vmany" });
        advance(1);
        await documents.write(AUDIT, all.slice(-20), { version: "vmore" });
        const endless = Number.POSITIVE_INFINITY;
        expect(await documents.trim(AUDIT, { ms: endless, count: endless })).toBe(0);
        expect(await documents.trim(AUDIT, { count: 5 })).toBe(TRIMMED);
        expect(keysOf(await documents.list(AUDIT)).toSorted()).toEqual(keys.slice(-20));
        expect(await retain(documents, AUDIT, { count: 5 }, NEVER)).toBe(15);
        expect(await documents.size(AUDIT)).toEqual({ documents: 5, bytes: 5 });
      }));

    rule("keeps the newest entries, and those that are not too old, and no other log's", () =>
      withDocuments(async (documents, advance) => {
        const other = { kind: "audit", tenant: "other" };
        for (const n of upTo(6)) {
          await append(documents, AUDIT, `${n}`);
          await append(documents, other, `${n}`);
          advance(10);
        }
        const left = async () =>
          (await entriesOf(documents, AUDIT, { limit: 10 })).items.map(({ body }) => body);
        expect(await retain(documents, AUDIT, { ms: 40 }, NEVER)).toBe(2);
        expect(await left()).toEqual(["6", "5", "4", "3"]);
        expect(await retain(documents, AUDIT, { count: 2 }, NEVER)).toBe(2);
        expect(await left()).toEqual(["6", "5"]);
        expect(await retain(documents, AUDIT, { ms: 1_000, count: 2 }, NEVER)).toBe(0);
        expect(await documents.list(other)).toHaveLength(6);
      }),
    );

    rule("that keeps its last entries does so as it grows, and is empty if nothing is kept", () =>
      withDocuments(async (documents) => {
        const list = { kind: "history", ...ADA };
        for (const n of upTo(4)) await append(documents, list, `${n}`, { count: 2 });
        const entries = await entriesOf(documents, list, { limit: 10 });
        expect(entries.items.map(({ body }) => body)).toEqual(["4", "3"]);
        expect(await retain(documents, list, { count: 0 })).toBe(2);
        expect(await documents.size(list)).toEqual({ documents: 0, bytes: 0 });
      }),
    );
  });

  describe("due documents of all tenants", () => {
    const claim = (documents: Documents, limit: number, leaseMs = 1_000) =>
      claimDue(documents, "plans", { limit, leaseMs });
    const of = (tenant: string) => ({ kind: "plans", tenant });
    const nowOf = async (documents: Documents) => (await documents.read(PLANS, [])).now;
    const names = (claims: readonly ClaimedDocument[]) =>
      claims.map(({ collection: { tenant, user }, key }) => [tenant, ...(user ? [user] : []), key].join("/"));

    test("are claimed by only one of several processes, never early, and never after they are finished", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        for (const n of upTo(6)) await put(documents, `k${n}`, { of: of(n % 2 ? "a" : "b"), due: now + 5 });
        await put(documents, "later", { of: of("a"), due: now + 500_000 });
        await put(documents, "never", { of: of("b") });
        expect(await claim(documents, 10)).toEqual([]);
        advance(5);
        const claims = (await Promise.all(upTo(4).map(() => claim(documents, 10)))).flat();
        expect(names(claims).toSorted()).toEqual(["a/k1", "a/k3", "a/k5", "b/k2", "b/k4", "b/k6"]);
        expect(await claim(documents, 10)).toEqual([]);
        for (const each of claims) expect(await finish(documents, each, { body: each.body })).toBe(true);
        advance(400_000);
        expect(await claim(documents, 10)).toEqual([]);
        advance(100_000);
        expect(names(await claim(documents, 10))).toEqual(["a/later"]);
      }));

    rule("are due again after a lease, and a late write by its holder is refused", () =>
      withDocuments(async (documents, advance) => {
        await put(documents, "k", { due: await nowOf(documents) });
        const [first] = await claim(documents, 1, 100);
        advance(99);
        expect(await claim(documents, 1, 100)).toEqual([]);
        advance(2);
        const [second] = await claim(documents, 1, 100);
        if (!first || !second) throw new Error("A document that is due is claimed.");
        expect(await finish(documents, first, { body: "late" })).toBe(false);
        const next = { body: second.body, due: (await nowOf(documents)) + 50 };
        expect(await finish(documents, second, next)).toBe(true);
        advance(49);
        expect(await claim(documents, 1, 100)).toEqual([]);
        advance(200);
        expect(names(await claim(documents, 1, 100))).toEqual(["acme/k"]);
      }),
    );

    test("follow the user's change or deletion during a claim", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        for (const key of ["changed", "gone"]) await put(documents, key, { due: now });
        const claims = await claim(documents, 2);
        expect(claims).toHaveLength(2);
        await put(documents, "changed", { body: "mine", due: now + 50_000 });
        await drop(documents, "gone");
        for (const each of claims) expect(await finish(documents, each, { body: "late" })).toBe(false);
        advance(10_000);
        expect(await claim(documents, 2)).toEqual([]);
        advance(50_000);
        expect(await claim(documents, 2)).toMatchObject([{ key: "changed", body: "mine" }]);
      }));

    test("of a tenant with very many do not delay another tenant's", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        const many = upTo(300).map((n) => ({ key: `k${n}`, seen: undefined, body: "x", due: now - 1_000 }));
        await documents.write(of("many"), many, { version: "vmany" });
        advance(1);
        for (const tenant of ["b", "c"]) await put(documents, "only", { of: of(tenant), due: now + 1 });
        const turns: string[] = [];
        for (const _ of upTo(6)) {
          advance(1);
          turns.push(...names(await claim(documents, 1)).map((name) => name.replace(/k\d+$/, "k")));
        }
        expect(turns.toSorted()).toEqual(["b/only", "c/only", ...Array(4).fill("many/k")]);
        expect(turns.slice(0, 3).toSorted()).toEqual(["b/only", "c/only", "many/k"]);
        expect(await claim(documents, 50)).toHaveLength(50);
      }));

    test("that were claimed before the clock was set back are due if no lease is that long", () =>
      withDocuments(async (documents, advance) => {
        await put(documents, "k", { due: await nowOf(documents) });
        expect(await claim(documents, 1, 100)).toHaveLength(1);
        advance(-10_000);
        expect(await claim(documents, 1)).toEqual([]);
        const ahead = { limit: 1, leaseMs: 100, aheadMs: 200 };
        expect(names(await claimDue(documents, "plans", ahead))).toEqual(["acme/k"]);
        expect(await claimDue(documents, "plans", ahead)).toEqual([]);
      }));

    test("are found if they are written, changed or deleted during a search", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        const waiting: string[] = [];
        const found: string[] = [];
        const look = async () => {
          found.push(
            ...names(await claim(documents, 10, 1_000_000)).filter((name) => !name.endsWith("gone")),
          );
        };
        // What is long may take another way, on which it waits.
        const body = "x".repeat(70_000);
        for (const round of upTo(10)) {
          const tenants = [`${round}a`, `${round}b`];
          waiting.push(...tenants.flatMap((tenant) => upTo(3).map((n) => `${tenant}/k${n}`)));
          for (const tenant of tenants) await put(documents, "gone", { of: of(tenant), due: now + 1 });
          advance(1);
          let isOver = false;
          const writing = Promise.all(
            tenants.flatMap((tenant) => [
              drop(documents, "gone", of(tenant)).catch(() => {}),
              ...upTo(3).map((n) => put(documents, `k${n}`, { of: of(tenant), body, due: now + round - n })),
            ]),
          ).finally(() => (isOver = true));
          do await Promise.all([look(), look()]);
          while (!isOver);
          await writing;
        }
        for (let before = -1; before < found.length; ) {
          before = found.length;
          await look();
        }
        expect(found.toSorted()).toEqual(waiting.toSorted());
      }));

    test("need a valid time, and a fraction of a millisecond is rounded up", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        for (const due of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 8.65e15])
          await expect(
            documents.write(PLANS, [{ key: "k", seen: undefined, body: "x", due }], { version: "vtime" }),
          ).rejects.toMatchObject({
            code: "invalid_request",
            message: expect.stringContaining(`\`due\` is ${due}`),
          });
        expect(await documents.list(PLANS)).toEqual([]);
        for (const [key, due] of Object.entries({ part: now + 1.5, past: -5, far: 8.64e15 }))
          await put(documents, key, { due });
        expect(names(await claim(documents, 10))).toEqual(["acme/past"]);
        advance(1);
        expect(await claim(documents, 10)).toEqual([]);
        advance(1);
        expect(names(await claim(documents, 10))).toEqual(["acme/part"]);
      }));

    rule("belong to one kind", () =>
      withDocuments(async (documents) => {
        const due = await nowOf(documents);
        await put(documents, "k", { of: { kind: "tools", tenant: "acme" }, due });
        expect(await claim(documents, 10)).toEqual([]);
        await put(documents, "k", { due });
        expect(names(await claim(documents, 10))).toEqual(["acme/k"]);
      }),
    );

    test("are found for every name of a tenant and a user", () =>
      withDocuments(async (documents) => {
        const due = await nowOf(documents);
        const names = ["", 'a"b', "a\u0000b", "\ud800", "a:b", "ä"];
        const all = [...names.map(of), ...names.map((name) => ({ ...of(name), user: name }))];
        for (const each of all) await put(documents, "k", { of: each, due });
        const found = (await claim(documents, 20)).map(({ collection: { tenant, user } }) => [tenant, user]);
        const sorted = (list: readonly unknown[]) => list.map((each) => JSON.stringify(each)).toSorted();
        expect(sorted(found)).toEqual(sorted(all.map(({ tenant, user }: OwnedCollection) => [tenant, user])));
      }));

    test("of many users share their tenant's turns, and stay due until they are written or deleted", () =>
      withDocuments(async (documents, advance) => {
        const now = await nowOf(documents);
        const users = upTo(12).map((n) => ({ ...of("many"), user: `u${n}` }));
        for (const each of users) await put(documents, "k", { of: each, due: now + 1 });
        await put(documents, "k", { of: { ...of("one"), user: "ada" }, due: now + 2 });
        expect(await claim(documents, 20)).toEqual([]);
        advance(5);
        const first = await claim(documents, 2);
        expect(names(first).toSorted()).toEqual([expect.stringMatching(/^many\/u/), "one/ada/k"]);
        for (const each of first) expect(await finish(documents, each, { body: undefined })).toBe(true);
        const left = names(await claim(documents, 20));
        expect(left).toHaveLength(11);
        expect(left).not.toContain(names(first).find((name) => name.startsWith("many")));
        const [unread, trimmed] = left.map((name) => ({ ...of("many"), user: name.split("/")[1] ?? "" }));
        if (!unread || !trimmed) throw new Error("The others are claimed.");
        await put(documents, "k", { of: unread });
        await retain(documents, trimmed, { count: 0 });
        advance(2_000);
        expect(await documents.pick("plans", { limit: 20, holdMs: 1_000 })).toHaveLength(9);
      }));
  });

  test("a user's documents belong only to the user, and have their own limits", () =>
    withDocuments(async (documents) => {
      const owners = [ADA, BOB, { tenant: ADA.tenant, user: "" }];
      const collections = [
        { kind: "plans", tenant: ADA.tenant },
        ...owners.map((each) => ({ kind: "plans", ...each })),
      ];
      for (const [at, collection] of collections.entries())
        for (const key of ["k", "l", "m"]) {
          const write = { key, seen: undefined, body: String(at) };
          const outcome = await documents.write(collection, [write], { version: `v${at}${key}`, limit: 2 });
          expect(outcome).toBe(key === "m" ? "full" : "written");
        }
      for (const [at, collection] of collections.entries()) {
        const { items } = await documents.page(collection, { order: "updated", limit: 5 });
        expect(items.map(({ key, body }) => `${key}${body}`).toSorted()).toEqual([`k${at}`, `l${at}`]);
      }
    }));

  test("documents of any kind are separate from other data of a tenant and a user", () =>
    inWorld(open, async ({ stores }) => {
      const { documents, quotas, threads } = stores;
      await threads.create(ADA, { id: "t", metadata: {} });
      const kinds = "threads shelves rate spent reserved usage stored held settled due names records".split(
        " ",
      );
      for (const kind of kinds)
        for (const of of [{ kind }, { kind, tenant: ADA.tenant }, { kind, ...ADA }])
          await put(documents, "k", { body: kind, of });
      const no = { tenant: undefined, user: undefined };
      expect(await quotas.take(ADA, { tenant: 10, user: 10 })).toBeUndefined();
      expect(await quotas.setStored(ADA, { id: "t", bytes: 5, ms: 1_000 }, no)).toBeUndefined();
      expect(await quotas.hold(ADA, { thing: "runs", id: "r", ms: 1_000 }, no)).toBe("new");
      expect(await quotas.stored(ADA)).toEqual({ tenant: 5, user: 5 });
      expect((await threads.list(ADA, { limit: 5 })).items).toHaveLength(1);
      for (const kind of kinds)
        for (const of of [{ kind }, { kind, tenant: ADA.tenant }, { kind, ...ADA }])
          expect(await documents.list(of)).toMatchObject([{ key: "k", body: kind }]);
    }));
}
