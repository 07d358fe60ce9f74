// Documents in memory. Those of a thread weigh on it and leave with it; those of agents have a bound of their own, past
// which a tenant loses the collection that it used least recently; the rest stays as long as the process.

import {
  type Collection,
  type Documents,
  type DocumentWrite,
  type ListedDocument,
  MAX_PICKED,
  TRIMMED,
} from "../../core/documents.ts";
import type { Shelf } from "../../core/items.ts";
import { losers } from "../../core/shares.ts";
import type { Owner } from "../../protocol/ids.ts";
import {
  inOrder,
  inTurn,
  isDueAt,
  listedPage,
  placeOf,
  refusalOf,
  standsAfter,
  tenantOfTurns,
  threadIdOf,
} from "../document-rules.ts";
import { noSuchThread } from "../errors.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { type DocumentEntry, type Items, type ThreadEntry, weightOf } from "./records.ts";

/** Of all collections of agents together. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_COLLECTIONS = 10_000;
/** What a document weighs beside its text, about. */
const DOCUMENT_BYTES = 200;

export interface MemoryDocuments extends Documents {
  /** Of the owner's agents. */
  shelves(owner: Owner): Shelf[];
}

export function memoryDocuments(memory: MemoryThreads): MemoryDocuments {
  const ofAgents = new AgentCollections();
  const others = new Map<string, Items>();
  const turns = new Turns();

  return {
    shelves(owner) {
      memory.assertOpen();
      return ofAgents.names(owner.tenant).flatMap((name) => {
        const { kind, user, of } = partsOf(name);
        return user === owner.user ? [{ owner, of, kind }] : [];
      });
    },

    async read(collection, keys) {
      const items = itemsOf(collection);
      return {
        found: keys.map((key) => items?.get(key)),
        exists: items !== undefined,
        now: memory.limits.now(),
      };
    },

    async list(collection) {
      return [...(itemsOf(collection)?.values() ?? [])];
    },

    async due(collection, limit, aheadMs = Number.POSITIVE_INFINITY) {
      const now = memory.limits.now();
      return dueOf(collection, (time) => isDueAt(now, aheadMs, time)).slice(0, limit);
    },

    async page(collection, query) {
      const place = placeOf(query);
      const { order, prefix = "", limit } = query;
      const all = [...(itemsOf(collection)?.values() ?? [])]
        .filter(({ key }) => order !== "key" || key.startsWith(prefix))
        .filter((each) => !place || standsAfter(order, place, each))
        .sort(inOrder(order));
      return listedPage(
        all.slice(0, limit + 1).map(({ due: _, bytes: __, ...document }) => document),
        query,
      );
    },

    async size(collection) {
      const items = itemsOf(collection) ?? new Map();
      return { documents: items.size, bytes: bytesOfOthers(items, []) };
    },

    async trim(collection, { ms = Number.POSITIVE_INFINITY, count = Number.POSITIVE_INFINITY }) {
      const items = itemsOf(collection);
      if (!items) return 0;
      const oldest = memory.limits.now() - ms;
      const newestFirst = [...items.values()].sort(inOrder("created"));
      const gone = newestFirst
        .filter(({ created_at }, at) => at >= count || created_at < oldest)
        .slice(-TRIMMED);
      for (const { key } of gone) items.delete(key);
      keep(collection, items);
      return gone.length;
    },

    async pick(kind, { limit, holdMs, aheadMs = Number.POSITIVE_INFINITY }) {
      const now = memory.limits.now();
      const isDue = (time: number) => isDueAt(now, aheadMs, time);
      const most = Math.min(limit, MAX_PICKED);
      const waiting = turns.waiting(kind, isDue).slice(0, most);
      const due = waiting.map((tenant) => dueOf({ kind, tenant }, isDue).slice(0, most));
      const picked = inTurn(
        due.map((of, at) => of.map((entry) => ({ entry, tenant: waiting[at] ?? "" }))),
        most,
      );
      for (const { entry, tenant } of picked)
        itemsOf({ kind, tenant })?.set(entry.key, { ...entry, due: now + holdMs });
      for (const tenant of waiting) turns.set({ kind, tenant }, nextTurn({ kind, tenant }, now));
      return picked.map(({ entry: { key, version }, tenant }) => ({
        collection: { kind, tenant },
        key,
        version,
      }));
    },

    async write(collection, writes, { version, ...bounds }) {
      const items = itemsOf(collection);
      const refused = refusalOf(writes, bounds, {
        exists: items !== undefined,
        versions: writes.map(({ key }) => items?.get(key)?.version),
        documents: () => items?.size ?? 0,
        otherBytes: () => bytesOfOthers(items, writes),
      });
      if (!items || refused === "none") throw noSuchThread(threadIdOf(collection));
      if (refused) return refused;
      const thread = threadOf(collection);
      if (thread && writes.some(({ body }) => body !== undefined))
        memory.makeRoom(thread.owner.tenant, thread);
      const before = thread ? weightOf(items) : 0;
      const now = memory.limits.now();
      for (const { key, body, due } of writes) {
        const created_at = items.get(key)?.created_at ?? now;
        if (body === undefined) items.delete(key);
        else items.set(key, entryOf({ key, body, version, created_at, updated_at: now }, due));
        if (body !== undefined && typeof due === "number") turns.add(collection, Math.max(due, now));
      }
      keep(collection, items);
      if (thread) memory.weigh(thread, weightOf(items) - before);
      return "written";
    },
  };

  function dueOf(collection: Collection, isDue: (time: number) => boolean): DocumentEntry[] {
    return [...(itemsOf(collection)?.values() ?? [])]
      .filter(({ due }) => isDue(due))
      .sort((a, b) => a.due - b.due || (a.key < b.key ? -1 : 1));
  }

  /** Infinity without anything that will be due. */
  function nextTurn(collection: Collection, now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { due } of itemsOf(collection)?.values() ?? []) next = Math.min(next, due);
    return Math.max(next, now);
  }

  /** Undefined when the collection's thread does not exist. */
  function itemsOf(collection: Collection): Items | undefined {
    memory.assertOpen();
    if (!("of" in collection)) return others.get(nameOf(collection)) ?? new Map();
    if ("agent" in collection.of)
      return ofAgents.get(collection.owner.tenant, nameOf(collection)) ?? new Map();
    const thread = threadOf(collection);
    return thread && (thread.collections?.get(collection.kind) ?? new Map());
  }

  function threadOf(collection: Collection): ThreadEntry | undefined {
    const isOfThread = "of" in collection && "thread" in collection.of;
    return isOfThread ? memory.find(collection.owner, collection.of.thread) : undefined;
  }

  function keep(collection: Collection, items: Items): void {
    const name = nameOf(collection);
    if (!("of" in collection)) others.set(name, items);
    else if ("agent" in collection.of) {
      ofAgents.set(collection.owner.tenant, name, items);
    } else {
      const thread = threadOf(collection);
      if (!thread) return;
      thread.collections ??= new Map();
      if (items.size > 0) thread.collections.set(collection.kind, items);
      else thread.collections.delete(collection.kind);
    }
  }
}

/** When documents of a tenant are to be looked for next, by kind. */
class Turns {
  readonly #kinds = new Map<string, Map<string, number>>();

  add(collection: Collection, time: number): void {
    const tenant = tenantOfTurns(collection);
    if (tenant === undefined) return;
    const known = this.#kinds.get(collection.kind)?.get(tenant) ?? Number.POSITIVE_INFINITY;
    this.set({ kind: collection.kind, tenant }, Math.min(known, time));
  }

  set({ kind, tenant }: { readonly kind: string; readonly tenant: string }, time: number): void {
    const tenants = this.#kinds.get(kind) ?? new Map<string, number>();
    if (time < Number.POSITIVE_INFINITY) this.#kinds.set(kind, tenants.set(tenant, time));
    else tenants.delete(tenant);
  }

  /** Those first that have waited longest. */
  waiting(kind: string, isDue: (time: number) => boolean): string[] {
    return [...(this.#kinds.get(kind) ?? [])]
      .filter(([, time]) => isDue(time))
      .sort(([, a], [, b]) => a - b)
      .map(([tenant]) => tenant);
  }
}

interface Shelved {
  readonly items: Items;
  readonly bytes: number;
}

/** The collections of agents, by tenant. Past the bounds `losers` says whose goes. */
class AgentCollections {
  /** Of a tenant's, the one that was used least recently comes first. */
  readonly #tenants = new Map<string, Map<string, Shelved>>();
  readonly #bytes = new Map<string, number>();
  #total = 0;
  #count = 0;

  get(tenant: string, name: string): Items | undefined {
    const own = this.#tenants.get(tenant);
    const found = own?.get(name);
    if (!own || !found) return undefined;
    own.delete(name);
    own.set(name, found);
    return found.items;
  }

  names(tenant: string): string[] {
    return [...(this.#tenants.get(tenant)?.keys() ?? [])];
  }

  /** Keeps nothing of an empty collection. */
  set(tenant: string, name: string, items: Items): void {
    this.#delete(tenant, name);
    if (items.size === 0) return;
    const bytes = weightOf(items);
    const own = this.#tenants.get(tenant) ?? new Map<string, Shelved>();
    this.#tenants.set(tenant, own.set(name, { items, bytes }));
    this.#bytes.set(tenant, (this.#bytes.get(tenant) ?? 0) + bytes);
    this.#count += 1;
    this.#total += bytes;
    while (this.#total > MAX_BYTES || this.#count > MAX_COLLECTIONS) this.#dropOne(tenant);
  }

  #dropOne(asking: string): void {
    const held = this.#total > MAX_BYTES ? this.#bytes : this.#counts();
    const [loser = asking] = losers(held, asking);
    const [oldest] = this.#tenants.get(loser)?.keys() ?? [];
    if (oldest !== undefined) this.#delete(loser, oldest);
  }

  #counts(): Map<string, number> {
    return new Map([...this.#tenants].map(([tenant, { size }]) => [tenant, size]));
  }

  #delete(tenant: string, name: string): void {
    const own = this.#tenants.get(tenant);
    const found = own?.get(name);
    if (!own || !found) return;
    own.delete(name);
    this.#count -= 1;
    this.#total -= found.bytes;
    this.#bytes.set(tenant, (this.#bytes.get(tenant) ?? 0) - found.bytes);
    if (own.size > 0) return;
    this.#tenants.delete(tenant);
    this.#bytes.delete(tenant);
  }
}

/** Of the bodies of documents that are not written. */
function bytesOfOthers(items: Items = new Map(), writes: readonly DocumentWrite[]): number {
  const written = new Set(writes.map(({ key }) => key));
  let bytes = 0;
  for (const { key, body } of items.values()) if (!written.has(key)) bytes += Buffer.byteLength(body);
  return bytes;
}

/** JSON, so that no two names collide. */
function nameOf(collection: Collection): string {
  if (!("of" in collection)) return JSON.stringify([collection.kind, collection.tenant]);
  const { owner, of, kind } = collection;
  return JSON.stringify([kind, owner.tenant, owner.user, of]);
}

/** Of the name of an agent's collection. */
function partsOf(name: string) {
  // Only `nameOf` makes these.
  const [kind, , user, of] = JSON.parse(name) as [Shelf["kind"], string, string, { agent: string }];
  return { kind, user, of };
}

function entryOf(document: ListedDocument, due?: number | null): DocumentEntry {
  const bytes = DOCUMENT_BYTES + Buffer.byteLength(document.key) + Buffer.byteLength(document.body);
  return { ...document, due: due ?? Number.POSITIVE_INFINITY, bytes };
}
