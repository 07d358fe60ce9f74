// The columns at the beginning of every key.

import type { Collection } from "../../agent/core/documents.ts";
import type { RunKey } from "../../agent/core/stores.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { PerScope } from "../quotas/store.ts";

/** Encodes an owner as JSON, so no two owners collide. */
export const ownerText = ({ tenant, user }: Owner) => JSON.stringify([tenant, user]);

/** Encodes only a tenant as JSON, so it cannot collide with an owner. */
export const tenantText = (tenant: string) => JSON.stringify([tenant]);

/** Returns the names under which a tenant and a user are counted. */
export const namesOf = (owner: Owner): PerScope<string> => ({
  tenant: tenantText(owner.tenant),
  user: ownerText(owner),
});

export function ownerOf(text: string): Owner {
  // Not validated, because only `ownerText` writes this column.
  const [tenant, user] = JSON.parse(text) as [string, string];
  return { tenant, user };
}

/** A thread's key in the tables. */
export type ThreadKey = readonly [owner: string, threadId: string];

export const threadText = (key: ThreadKey) => JSON.stringify(key);

export function threadOf(text: string): ThreadKey {
  // Not validated, because only `threadText` creates these.
  return JSON.parse(text) as [string, string];
}

/** A run's key in the tables: owner, thread, run. */
export type RowKey = readonly [owner: string, threadId: string, runId: string];

export const rowKey = ({ owner, thread_id, run_id }: RunKey): RowKey => [ownerText(owner), thread_id, run_id];

/** A collection's key in the tables: its name and, if it belongs to a thread, the thread. */
export interface CollectionKey {
  readonly name: string;
  readonly thread?: ThreadKey;
}

export function collectionKey(collection: Collection): CollectionKey {
  if (!("of" in collection)) return { name: nameOf([collection.kind, collection.tenant, collection.user]) };
  const { owner, of, kind } = collection;
  const text = ownerText(owner);
  if ("agent" in of) return { name: nameOf([kind, text, "agent", of.agent]) };
  return { name: nameOf([kind, text, "thread", of.thread]), thread: [text, of.thread] };
}

const nameOf = (parts: readonly (string | undefined)[]) =>
  JSON.stringify(parts.filter((part) => part !== undefined));
