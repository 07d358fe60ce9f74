// Keeps collections of documents in memory. A thread's documents count towards its size and are deleted with it. The
// collections of users and their agents share a limit. When the limit is exceeded, a tenant loses its least recently
// used collection. All other collections remain until the process ends.

import type { Collection } from "../../../agent/core/documents.ts";
import type { Shelf } from "../../../agent/core/items.ts";
import { losers } from "../../../agent/core/shares.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { type Items, type ThreadEntry, weightOf } from "./records.ts";

/** The maximum size in bytes of all collections of users and agents together. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_COLLECTIONS = 10_000;

export interface MemoryCollections {
  /**
   * Returns undefined if the collection's thread does not exist. If the collection is empty, pass it to `keep` instead
   * of changing it.
   */
  itemsOf(collection: Collection): Items | undefined;
  keep(collection: Collection, items: Items): void;
  /** Returns the thread that a collection belongs to. */
  threadOf(collection: Collection): ThreadEntry | undefined;
  /** Returns the shelves of the owner's agents. */
  shelves(owner: Owner): Shelf[];
}

export function memoryCollections(memory: MemoryThreads): MemoryCollections {
  const owned = new OwnedCollections();
  const others = new Map<string, Items>();

  return {
    itemsOf(collection) {
      memory.assertOpen();
      if (isOfThread(collection)) {
        const thread = threadOf(collection);
        return thread && (thread.collections?.get(collection.kind) ?? new Map());
      }
      const [tenant, name] = [boundTenantOf(collection), nameOf(collection)];
      return (tenant === undefined ? others.get(name) : owned.get(tenant, name)) ?? new Map();
    },

    keep(collection, items) {
      if (isOfThread(collection)) return keepWith(threadOf(collection), collection.kind, items);
      const [tenant, name] = [boundTenantOf(collection), nameOf(collection)];
      if (tenant !== undefined) owned.set(tenant, name, items);
      else if (items.size > 0) others.set(name, items);
      else others.delete(name);
    },

    threadOf,

    shelves(owner) {
      memory.assertOpen();
      return owned.names(owner.tenant).flatMap((name) => {
        const { kind, user, of } = partsOf(name);
        // Only shelves have an `of`.
        return of && user === owner.user ? [{ owner, of, kind: kind as Shelf["kind"] }] : [];
      });
    },
  };

  function threadOf(collection: Collection): ThreadEntry | undefined {
    return isOfThread(collection) ? memory.find(collection.owner, collection.of.thread) : undefined;
  }
}

function keepWith(thread: ThreadEntry | undefined, kind: Shelf["kind"], items: Items): void {
  if (!thread) return;
  thread.collections ??= new Map();
  if (items.size > 0) thread.collections.set(kind, items);
  else thread.collections.delete(kind);
}

type ThreadShelf = Shelf & { readonly of: { readonly thread: string } };
const isOfThread = (collection: Collection): collection is ThreadShelf =>
  "of" in collection && "thread" in collection.of;

/** Returns the tenant of a user's or an agent's collection. These collections are limited. */
function boundTenantOf(collection: Collection): string | undefined {
  if ("of" in collection) return collection.owner.tenant;
  return collection.user === undefined ? undefined : collection.tenant;
}

/** Encodes the name as JSON, so no two names collide. */
function nameOf(collection: Collection): string {
  if (!("of" in collection)) return JSON.stringify([collection.kind, collection.tenant, collection.user]);
  const { owner, of, kind } = collection;
  return JSON.stringify([kind, owner.tenant, owner.user, of]);
}

/** Returns the parts of the name of a user's or an agent's collection. */
function partsOf(name: string) {
  // Not validated, because only `nameOf` creates these.
  const [kind, , user, of] = JSON.parse(name) as [string, string, string, of?: { agent: string }];
  return { kind, user, of };
}

interface WeighedItems {
  readonly items: Items;
  readonly bytes: number;
}

/**
 * The collections of users and agents, by tenant. When the limits are exceeded, `losers` decides which tenant loses a
 * collection.
 */
class OwnedCollections {
  /** A tenant's collections, least recently used first. */
  readonly #tenants = new Map<string, Map<string, WeighedItems>>();
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

  /** Stores nothing for an empty collection. */
  set(tenant: string, name: string, items: Items): void {
    this.#delete(tenant, name);
    if (items.size === 0) return;
    const bytes = weightOf(items);
    const own = this.#tenants.get(tenant) ?? new Map<string, WeighedItems>();
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
