// What every store of documents promises. What may follow what is decided by those who use it.

import { describe, expect, test } from "vitest";
import { type Collection, change, type Documents, remove } from "../../src/agent/core/documents.ts";
import { ADA, BOB, inWorld, type Open, ruleTest, upTo } from "../engine/stores/fixture.ts";

const BOXES: Collection = { kind: "boxes" };

/** Adds one to each of these numbers. */
const count = (documents: Documents, collection: Collection, keys: readonly string[]) =>
  change(documents, { collection, keys }, ({ found }) => ({
    writes: found.map((document, at) => ({
      key: keys[at] ?? "",
      seen: document?.version,
      body: String(Number(document?.body ?? 0) + 1),
    })),
    result: undefined,
  }));

const bodies = async (documents: Documents, collection: Collection) =>
  Object.fromEntries((await documents.list(collection)).map(({ key, body }) => [key, body]));

export function documentsContract(open: Open): void {
  const rule = ruleTest(open);
  const withDocuments = (body: (documents: Documents, advance: (ms: number) => void) => Promise<void>) =>
    inWorld(open, async ({ stores, advance }) => {
      await stores.threads.create(ADA, { id: "t", metadata: {} });
      await body(stores.documents, advance);
    });

  const others: [string, Collection][] = [
    ["of the deployment", BOXES],
    ["of an agent", { kind: "notes", owner: ADA, of: { agent: "helper" } }],
  ];
  describe.each<[string, Collection]>([
    ...(open.rules ? others : []),
    ["of a tenant", { kind: "tools", tenant: "acme" }],
    ["of a thread", { kind: "notes", owner: ADA, of: { thread: "t" } }],
  ])("documents %s", (_, collection) => {
    test("keep every change by simultaneous writers", () =>
      withDocuments(async (documents) => {
        const pairs = upTo(24).map((n) => [["a", "b"], ["b", "c"], ["c"]][n % 3] ?? []);
        await Promise.all(pairs.map((keys) => count(documents, collection, keys)));
        expect(await bodies(documents, collection)).toEqual({ a: "8", b: "16", c: "16" });
      }));

    test("are written all together or not at all", () =>
      withDocuments(async (documents) => {
        await count(documents, collection, ["a"]);
        const { found } = await documents.read(collection, ["a", "b"]);
        const seen = found[0]?.version;
        await count(documents, collection, ["b"]);
        const writes = [
          { key: "a", seen, body: "10" },
          { key: "b", seen: undefined, body: "10" },
        ];
        expect(await documents.write(collection, writes, { version: "v1" })).toBe("changed");
        expect(await bodies(documents, collection)).toEqual({ a: "1", b: "1" });
      }));

    test("that were deleted and written again are not mistaken for the old ones", () =>
      withDocuments(async (documents) => {
        await count(documents, collection, ["a"]);
        const [old] = (await documents.read(collection, ["a"])).found;
        expect(await remove(documents, collection, "a")).toBe(true);
        expect(await remove(documents, collection, "a")).toBe(false);
        expect(await documents.list(collection)).toEqual([]);
        await count(documents, collection, ["a"]);
        for (const body of ["late", undefined]) {
          const write = { key: "a", seen: old?.version, body };
          expect(await documents.write(collection, [write], { version: `v${body}` })).toBe("changed");
        }
        expect(await bodies(documents, collection)).toEqual({ a: "1" });
      }));

    test("are limited in number, even with simultaneous writers", () =>
      withDocuments(async (documents) => {
        const put = (key: string, seen?: string) =>
          documents.write(collection, [{ key, seen, body: "x" }], { version: `v${key}`, limit: 5 });
        const outcomes = await Promise.all(upTo(8).map((n) => put(`k${n}`)));
        expect(outcomes.toSorted()).toEqual([...Array(3).fill("full"), ...Array(5).fill("written")]);
        const [first] = await documents.list(collection);
        expect(await put(first?.key ?? "", first?.version)).toBe("written");
      }));

    rule("are decided again if another writer was faster, even for the last place", () =>
      withDocuments(async (documents) => {
        await count(documents, collection, ["a"]);
        const late = [{ key: "a", seen: undefined, body: "too long" }];
        const bounds = { version: "vlate", limit: 0, bytes: 1 };
        expect(await documents.write(collection, late, bounds)).toBe("changed");
      }),
    );

    test("are limited in total bytes, even with simultaneous writers", () =>
      withDocuments(async (documents) => {
        const put = (key: string, body: string, seen?: string) =>
          documents.write(collection, [{ key, seen, body }], { version: `v${key}${body.length}`, bytes: 15 });
        const outcomes = await Promise.all(upTo(8).map((n) => put(`k${n}`, "äx")));
        expect(outcomes.toSorted()).toEqual([...Array(3).fill("large"), ...Array(5).fill("written")]);
        const [first] = await documents.list(collection);
        const { key = "", version } = first ?? {};
        expect(await put(key, "four", version)).toBe("large");
        expect(await put(key, "z", version)).toBe("written");
        expect(await put("more", "zz")).toBe("written");
      }));
  });

  rule("documents are due from their time on, earliest first, until they are written without a time", () =>
    withDocuments(async (documents, advance) => {
      const { now } = await documents.read(BOXES, []);
      const put = (key: string, due: number | null, seen?: string) =>
        documents.write(BOXES, [{ key, seen, body: "x", due }], { version: `v${key}${due}` });
      for (const [key, due] of [
        ["late", 20],
        ["early", 10],
        ["never", null],
      ] as const)
        await put(key, due === null ? null : now + due);
      const due = async (limit = 10) => (await documents.due(BOXES, limit)).map(({ key }) => key);
      advance(9);
      expect(await due()).toEqual([]);
      advance(1);
      expect(await due()).toEqual(["early"]);
      advance(10);
      expect(await due()).toEqual(["early", "late"]);
      expect(await due(1)).toEqual(["early"]);
      const [early] = (await documents.read(BOXES, ["early"])).found;
      await put("early", null, early?.version);
      expect(await due()).toEqual(["late"]);
      await remove(documents, BOXES, "late");
      expect(await due()).toEqual([]);
    }),
  );

  test("documents with an impossibly late time are due, because the clock was set back", () =>
    withDocuments(async (documents, advance) => {
      const { now } = await documents.read(BOXES, []);
      for (const [key, due] of [
        ["later", now + 20],
        ["late", now + 11],
        ["soon", now + 10],
        ["due", now - 1],
        ["never", null],
      ] as const)
        await documents.write(BOXES, [{ key, seen: undefined, body: key, due }], { version: `v${key}` });
      const due = async (limit: number, aheadMs?: number) =>
        (await documents.due(BOXES, limit, aheadMs)).map(({ key }) => key);
      expect(await due(10)).toEqual(["due"]);
      expect(await due(10, 10)).toEqual(["due", "late", "later"]);
      expect(await due(2, 10)).toEqual(["due", "late"]);
      expect(await due(1, 10)).toEqual(["due"]);
      advance(-9);
      expect(await due(10, 10)).toEqual(["soon", "late", "later"]);
    }));

  test("collections whose combined names are identical are separate", () =>
    withDocuments(async (documents) => {
      const collections: Collection[] = [
        { kind: "notes", tenant: ADA.tenant },
        { kind: "tools", tenant: "a" },
        { kind: "tools", tenant: "a:b" },
        { kind: "tools", tenant: "" },
        { kind: "tools" },
        { kind: "notes", owner: ADA, of: { agent: "t" } },
        { kind: "notes", owner: ADA, of: { agent: "t:due" } },
        { kind: "notes", owner: ADA, of: { thread: "t" } },
        { kind: "notes", owner: BOB, of: { agent: "t" } },
      ];
      for (const [n, each] of collections.entries())
        for (let times = 0; times <= n; times++) await count(documents, each, ["k"]);
      for (const [n, each] of collections.entries())
        expect(await bodies(documents, each)).toEqual({ k: String(n + 1) });
    }));

  test("documents of a missing thread can be neither read nor written", () =>
    inWorld(open, async ({ stores: { documents } }) => {
      const notes: Collection = { kind: "notes", owner: ADA, of: { thread: "none" } };
      expect(await documents.read(notes, ["k"])).toMatchObject({ found: [undefined], exists: false });
      const write = documents.write(notes, [{ key: "k", seen: undefined, body: "x" }], { version: "v1" });
      await expect(write).rejects.toMatchObject({ code: "not_found" });
    }));
}
