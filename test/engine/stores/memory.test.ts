import { describe, expect, test } from "vitest";
import { newVersion } from "../../../src/agent/core/documents.ts";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import type { StoreOptions } from "../../../src/engine/stores/options.ts";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { busContract } from "../../contracts/bus.ts";
import { resultsAfterClockSetBackContract } from "../../contracts/clock-set-back.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { eventsContract } from "../../contracts/events.ts";
import { httpToolsContract } from "../../contracts/http-tools.ts";
import { itemsContract } from "../../contracts/items.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { nounsOfDocumentsContract, nounsWithRunsContract } from "../../contracts/nouns.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { sandboxesContract } from "../../contracts/sandboxes.ts";
import { schedulesContract } from "../../contracts/schedules.ts";
import { sentRequestsContract } from "../../contracts/sent-requests.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { ADA, claimed, done, inWorld, message, type Open, readAll } from "./fixture.ts";

const open: Open = Object.assign(async (options?: StoreOptions) => createMemoryStores(options), {
  rules: true as const,
});

const compressed: Open = async (options) => createMemoryStores({ ...options, uncompressedBytes: 0 });

threadsContract(open);
runsContract(open);
eventsContract(open);
deferredCallsContract(open);
resultsAfterClockSetBackContract(open);
anyCommandsContract(compressed, 60);
itemLivesContract(open);
sentRequestsContract(open);
ownersContract(open);
storesContract(open);
nounsWithRunsContract(open);
nounsOfDocumentsContract(open);
schedulesContract(open);

sandboxesContract(open);
documentsContract(open);
documentListsContract(open);
itemsContract(open);
httpToolsContract(open);
busContract(open);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a thread in memory", () => {
  test("is deleted an hour after it was last read or written", () =>
    inWorld(open, async ({ stores, advance }) => {
      const touched = ["read", "renamed", "listened to", "run"];
      for (const id of ["idle", ...touched]) await stores.threads.create(ADA, { id, metadata: {} });
      const { lease } = await claimed(stores, "listened to");
      await stores.events.append(lease, [message("x"), done()]);
      advance(40 * MINUTE);
      await stores.threads.messages(ADA, "read");
      await stores.threads.update(ADA, "renamed", { title: "x" });
      await readAll(stores, lease);
      await stores.events.append((await claimed(stores, "run")).lease, [done()]);
      advance(20 * MINUTE - 1);
      expect((await stores.threads.list(ADA, { limit: 10 })).items).toHaveLength(5);
      advance(1);
      const left = (await stores.threads.list(ADA, { limit: 10 })).items.map(({ id }) => id);
      expect(left.sort()).toEqual([...touched].sort());
      expect(await stores.threads.get(ADA, "idle")).toBeUndefined();
      advance(40 * MINUTE - 1);
      expect(await stores.threads.get(ADA, "run")).toBeDefined();
      advance(1);
      for (const id of ["read", "renamed", "listened to"])
        expect(await stores.threads.get(ADA, id), id).toBeUndefined();
      expect(await stores.threads.get(ADA, "run")).toBeDefined();
    }));

  test("waits a day for a person's answer", () =>
    inWorld(open, async ({ stores, advance }) => {
      const { lease } = await claimed(stores, "t");
      await stores.events.append(lease, [message("may I?"), done("interrupted")]);
      advance(24 * HOUR - 1);
      expect(await stores.threads.messages(ADA, "t")).toHaveLength(1);
      advance(24 * HOUR);
      expect(await stores.threads.get(ADA, "t")).toBeUndefined();
    }));
});

/** Stores in which each tenant has this many due documents. */
async function withDue(counts: Readonly<Record<string, number>>) {
  const { documents } = createMemoryStores({ now: () => 1_000 });
  for (const [tenant, count] of Object.entries(counts)) {
    const writes = Array.from({ length: count }, (_, n) => ({
      key: `k${n}`,
      seen: undefined,
      body: "",
      due: 1,
    }));
    await documents.write({ kind: "plans", tenant }, writes, { version: newVersion() });
  }
  return documents;
}

test("tenants take turns even within one millisecond", async () => {
  const documents = await withDue({ many: 5, few: 1, other: 1 });
  const turns: string[] = [];
  for (let n = 0; n < 7; n++)
    for (const { collection, key } of await documents.pick("plans", { limit: 1, holdMs: 1_000 }))
      turns.push(`${collection.tenant} ${key}`);
  expect(turns.slice(0, 3)).toEqual(["many k0", "few k0", "other k0"]);
  expect(turns.slice(3)).toEqual(["many k1", "many k2", "many k3", "many k4"]);
});

test("a due document for which a pick has no room is picked next", async () => {
  const documents = await withDue({ one: 2, other: 2 });
  const picked = async () =>
    (await documents.pick("plans", { limit: 3, holdMs: 1_000 })).map(
      ({ collection, key }) => `${collection.tenant} ${key}`,
    );
  expect(await picked()).toEqual(["one k0", "other k0", "one k1"]);
  expect(await picked()).toEqual(["other k1"]);
});

test("documents are picked in order of their times, once each, however often they were written", async () => {
  let now = 0;
  const { documents } = createMemoryStores({ now: () => now });
  const collection = { kind: "plans", tenant: "acme", user: "ada" };
  const versions = new Map<string, string>();
  const write = async (key: string, due: number) => {
    const version = newVersion();
    await documents.write(collection, [{ key, seen: versions.get(key), body: "", due }], { version });
    versions.set(key, version);
  };
  const times = new Map<string, number>();
  for (let round = 0; round < 10; round++)
    for (let n = 0; n < 100; n++) {
      const due = 1 + ((n * 37 + round * 61) % 101);
      times.set(`k${n}`, due);
      await write(`k${n}`, due);
    }
  const expected = [...times].toSorted(([a, at], [b, bt]) => at - bt || (a < b ? -1 : 1)).map(([key]) => key);
  now = 200;
  const picked: string[] = [];
  for (let n = 0; n < 20; n++)
    picked.push(...(await documents.pick("plans", { limit: 7, holdMs: 1_000 })).map(({ key }) => key));
  expect(picked).toEqual(expected);
});
