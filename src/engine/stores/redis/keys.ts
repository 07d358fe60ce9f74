// The names of all keys and channels in Redis. They are built only here.
//
// An owner's keys contain the owner's tag, which is a hash, so two owners never collide and no key contains a person's
// name. The part between braces determines the cluster slot of a key. All keys of a thread are in one slot.

import { hash } from "node:crypto";
import type { Collection } from "../../../agent/core/documents.ts";
import type { Owner } from "../../../protocol/ids.ts";

/**
 * The number of milliseconds within which a call whose reply was lost can be repeated to find out whether it was
 * carried out.
 */
export const DEDUPE_TTL_MS = 60_000;

/** Slightly more than 128 bits. */
const TAG_LENGTH = 22;

const tag = (value: unknown) => hash("sha256", JSON.stringify(value), "base64url").slice(0, TAG_LENGTH);

export const ownerTag = ({ tenant, user }: Owner) => tag([tenant, user]);
export const tenantTag = ({ tenant }: Pick<Owner, "tenant">) => tag([tenant]);

/** Identifies a thread among the threads of all owners. */
export const threadTag = (owner: Owner, threadId: string) => `${ownerTag(owner)}:${threadId}`;
export const threadIdOf = (thread: string) => thread.slice(TAG_LENGTH + 1);

/** All keys of a thread, except the streams of its runs. */
export const THREAD = [
  /** Hash: owner, title, metadata, agent, outcome, times. The thread exists if this key does. */
  "meta",
  /** List: the messages, oldest first. */
  "messages",
  /** Hash: a message's id → its index in `messages`. */
  "ids",
  /** Hash: slot → its value when it was last set. */
  "state",
  /** Hash: the patches of each slot since its value was set, key by key. */
  "patches",
  /** List: the ids of all runs, oldest first. */
  "order",
  /** List: the ids of all runs that were ever claimed, in the order of their first claims. */
  "begun",
  /** Hash: run → its creation record; `end:<run>` → how it ended. */
  "runs",
  /** Hash: idempotency key → run. */
  "known",
  /** List: the waiting runs, in order. */
  "queue",
  /** Hash: for unfinished runs, their requests and the calls that created them. */
  "requests",
  /** Hash: the active run, its holder, and its position. A run is active if this key exists. */
  "lease",
  /** Hash: a message's id → its number and text, queued for the active run. */
  "inbox",
  /** Hash: a deferred call → its state and everything known about it, except its result. */
  "deferred",
  /** Hash: a deferred call → its result. */
  "replies",
  /** Hashes, one per shelf: an item's key → its version, time and value. */
  "notes",
  "tasks",
  "reflections",
  "settings",
  /** Hash: a model call → its request. */
  "sent",
] as const;

export type ThreadKeys = Readonly<Record<(typeof THREAD)[number], string>>;

export function threadKeys(thread: string): ThreadKeys {
  const keys = THREAD.map((part) => [part, `sk:{${thread}}:${part}`]);
  // The object has one entry for each name in THREAD.
  return Object.fromEntries(keys) as ThreadKeys;
}

/** Marks that a call has deleted the thread, for as long as the call can be repeated. */
export const deletedKey = (thread: string, call: string) => `sk:{${thread}}:deleted:${call}`;

/** List and hash like `messages` and `ids`, for a thread that is being copied. */
export function stagedKeys(thread: string, token: string) {
  const staged = `sk:{${thread}}:staged:${token}`;
  return { staged, staged_ids: `${staged}:ids` };
}

/** Stream: the events of a run. */
export const eventsKey = (thread: string, runId: string) => `sk:{${thread}}:events:${runId}`;

/**
 * `items`: the documents of a collection. `due`: due documents and their times. `meta`: the key with which the
 * collection expires, which is `items` unless the collection belongs to a thread. `done`: marks that a call has changed
 * the collection, for as long as the call can be repeated. `names`, `created`, `updated`: sorted sets of the keys, by
 * bytes and by times, if the collection is listed in order.
 */
export function collectionKeys(collection: Collection, call = "") {
  const { place, name, meta } = placeOf(collection);
  const items = `${place}:${name}`;
  return {
    items,
    due: `${place}:due:${name}`,
    meta: meta ?? items,
    done: `${place}:done:${call}`,
    names: `${place}:names:${name}`,
    created: `${place}:created:${name}`,
    updated: `${place}:updated:${name}`,
  };
}

/**
 * The names of a tenant's other keys. A collection whose kind is one of these names is stored under a different name.
 */
const TAKEN = new Set(["rate", "spent", "reserved", "usage", "stored", "held", "settled", "threads"]);

function placeOf(collection: Collection): { place: string; name: string; meta?: string } {
  const { kind } = collection;
  if (!("of" in collection)) {
    const { tenant, user } = collection;
    if (tenant === undefined) return { place: `sk:{${kind}}`, name: "records" };
    if (user !== undefined) return { place: `sk:{${ownerTag({ tenant, user })}}`, name: `documents:${kind}` };
    return { place: `sk:{${tag([tenant])}}`, name: TAKEN.has(kind) ? `documents:${kind}` : kind };
  }
  const { owner, of } = collection;
  if ("agent" in of) return { place: `sk:{${ownerTag(owner)}}`, name: `${kind}:${of.agent}` };
  const thread = threadTag(owner, of.thread);
  return { place: `sk:{${thread}}`, name: kind, meta: threadKeys(thread).meta };
}

/** Sorted set: an owner's threads by their most recent change. */
export const threadsKey = (owner: Owner) => `sk:{${ownerTag(owner)}}:threads`;

/** Set: the items that an owner keeps with agents, each as kind and agent. */
export const shelvesKey = (owner: Owner) => `sk:{${ownerTag(owner)}}:shelves`;

/** Sorted set: all owners of threads as JSON, by name. */
export const OWNERS = "sk:{owners}";

/** The keys of a schedule of threads to check. */
export interface SchedulePlace {
  /** Sorted set: the tenants with entries. */
  readonly tenants: string;
  /** The prefix of a tenant's tag. The key is a sorted set of the tenant's threads. */
  readonly threads: string;
  /** The entries that one call claimed, for as long as it can be repeated. */
  taken(call: string): string;
}

const schedulePlace = (name: string): SchedulePlace => ({
  tenants: `sk:{${name}}:tenants`,
  threads: `sk:{${name}}:`,
  taken: (call) => `sk:{${name}}:taken:${call}`,
});

/** Threads with runs. */
export const DUE = schedulePlace("due");
/** Threads with calls that were accepted or delivered. */
export const DEFERRED = schedulePlace("deferred");

/**
 * Due documents of a kind. An entry is the JSON of the tenant and the key, and also of the user if a user owns the
 * document.
 */
export const documentTurns = (kind: string) => schedulePlace(`turns:${kind}`);

/** Text: the location of the call that a token belongs to, kept while the token is valid. */
export const tokenKey = (tokenHash: string) => `sk:{token:${tokenHash}}`;

/** Text: the deployment's name, shared by all processes of the database. */
export const DEPLOYMENT = "sk:{deployment}";

/** Text: the format of the database's data as JSON. */
export const FORMAT_KEY = "sk:{format}";

/** Text: a secret shared by all processes. */
export const SECRET = "sk:{secret}";

/** Written to test whether Redis accepts writes. Expires after a second. */
export const PROBE = "sk:{probe}";

/** A value written in order to wait for replicas. */
export const REPLICATED = "sk:{replicated}";

/** The prefix of channel names. Channels belong to the server, not to one of its databases. */
export const channelsOf = (database: number) => `sk:${database}`;
export const runChannel = (channels: string, thread: string, runId: string) =>
  `${channels}:{${thread}}:${runId}`;
export const userChannel = (channels: string, owner: Owner) => `${channels}:{${ownerTag(owner)}}`;
export const callChannel = (channels: string) => `${channels}:{calls}`;
/** Returns a channel that no process listens to. Sending a message on it checks that messages can be sent. */
export const probeChannel = (channels: string) => `${channels}:{probe}`;

/**
 * The usage of a tenant and one of its users. All keys of a tenant are in one slot, because they change together.
 * `rate`: text, the time at which all requests so far are paid off. `spent`: hash, the amounts used on the most recent
 * day and in the most recent month. `reserved`: hash, every reservation, and the sums of all reservations. `due`:
 * sorted set, the times at which reservations expire. `usage`, `tenant_usage`: hashes, usage by day, agent and model,
 * of the user and of all users. `users`: hash, usage of all users by day and name.
 */
export function quotaKeys(owner: Owner) {
  const place = `sk:{${tenantTag(owner)}}`;
  const user = ownerTag(owner);
  return {
    rate: `${place}:rate`,
    own_rate: `${place}:rate:${user}`,
    spent: `${place}:spent`,
    own_spent: `${place}:spent:${user}`,
    reserved: `${place}:reserved`,
    due: `${place}:reserved:due`,
    usage: `${place}:usage:${user}`,
    tenant_usage: `${place}:usage`,
    users: `${place}:usage:users`,
  };
}

/**
 * `stored`: hash, the bytes of each thread of a tenant, and their sums. `due`: sorted set, the time until which the
 * bytes of each thread count.
 */
export function storedKeys(owner: Owner) {
  const stored = `sk:{${tenantTag(owner)}}:stored`;
  return { stored, due: `${stored}:due` };
}

/**
 * Sorted sets: the holds of a tenant and of one of its users on a resource, sorted by the time at which they expire.
 */
export function heldKeys(owner: Owner, thing: string) {
  const held = `sk:{${tenantTag(owner)}}:held:${thing}`;
  return { held, own_held: `${held}:${ownerTag(owner)}` };
}

/** Marks that a call has counted its spending, for as long as it can be repeated. */
export const settledKey = (owner: Owner, call: string) => `sk:{${tenantTag(owner)}}:settled:${call}`;
