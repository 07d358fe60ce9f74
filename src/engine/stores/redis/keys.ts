// The name of every key in Redis, and of every channel. They are built here and nowhere else.
//
// Keys of an owner contain the owner's tag: a hash, so that the names of two owners never collide and no key contains a
// person's name. The part between braces decides where in a cluster a key lives: all keys of a thread are in one slot.

import { hash } from "node:crypto";
import type { Collection } from "../../../agent/core/documents.ts";
import type { Owner } from "../../../protocol/ids.ts";

/** How long a call may ask again whether it was carried out, when its answer was lost, in ms. */
export const DEDUPE_TTL_MS = 60_000;

/** 128 bits and a little more. */
const TAG_LENGTH = 22;

const tag = (value: unknown) => hash("sha256", JSON.stringify(value), "base64url").slice(0, TAG_LENGTH);

export const ownerTag = ({ tenant, user }: Owner) => tag([tenant, user]);
export const tenantTag = ({ tenant }: Pick<Owner, "tenant">) => tag([tenant]);

/** Names a thread of all owners'. */
export const threadTag = (owner: Owner, threadId: string) => `${ownerTag(owner)}:${threadId}`;
export const threadIdOf = (thread: string) => thread.slice(TAG_LENGTH + 1);

/** All that lies in a thread's place, but the streams of its runs. */
export const THREAD = [
  /** Hash: whose it is, title, metadata, agent, outcome, times. There is a thread when there is this. */
  "meta",
  /** List: the messages, oldest first. */
  "messages",
  /** Hash: a message's id → its place in `messages`. */
  "ids",
  /** Hash: slot → its value, as it was last set. */
  "state",
  /** Hash: what was merged into slots since, key by key. */
  "patches",
  /** List: the ids of all runs, oldest first. */
  "order",
  /** List: the ids of the runs that were ever claimed, in the order of their first claims. */
  "begun",
  /** Hash: run → what it was made as; `end:<run>` → how it ended. */
  "runs",
  /** Hash: idempotency key → run. */
  "known",
  /** List: the runs that wait, in their order. */
  "queue",
  /** Hash: of runs that have not ended, what they were asked to do, and which call made them. */
  "requests",
  /** Hash: the run that runs, who may write it, and how far it is. There is an active run when there is this. */
  "lease",
  /** Hash: a message's id → its number and itself: what was left for that run. */
  "inbox",
  /** Hash: a call whose result comes later → its state and everything that is known of it, except its result. */
  "deferred",
  /** Hash: a call of those → its result. */
  "replies",
  /** Hashes, a shelf each: an item's key → its version, time and value. */
  "notes",
  "tasks",
  "reflections",
  "settings",
  /** Hash: a model call → what the model was sent. */
  "sent",
] as const;

export type ThreadKeys = Readonly<Record<(typeof THREAD)[number], string>>;

export function threadKeys(thread: string): ThreadKeys {
  const keys = THREAD.map((part) => [part, `sk:{${thread}}:${part}`]);
  // One entry for each of THREAD.
  return Object.fromEntries(keys) as ThreadKeys;
}

/** That a call has deleted the thread, for as long as it may ask again. */
export const deletedKey = (thread: string, call: string) => `sk:{${thread}}:deleted:${call}`;

/** List and hash, as `messages` and `ids`: those of a thread that is being copied. */
export function stagedKeys(thread: string, token: string) {
  const staged = `sk:{${thread}}:staged:${token}`;
  return { staged, staged_ids: `${staged}:ids` };
}

/** Stream: what a run said. */
export const eventsKey = (thread: string, runId: string) => `sk:{${thread}}:events:${runId}`;

/**
 * `items`: the documents of a collection. `due`: which of them are due, and when. `meta`: what the collection goes with,
 * which is itself where that is nothing. `done`: that a call has changed it, for as long as it may be repeated. `names`, `created`,
 * `updated`: sorted sets of the keys, by bytes and by times, of a collection that is listed in order.
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

/** Names of other keys of a tenant: a collection of that kind gets another name. */
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

/** Sorted set: an owner's threads by their last change. */
export const threadsKey = (owner: Owner) => `sk:{${ownerTag(owner)}}:threads`;

/** Set: the items that an owner keeps with agents, each as kind and agent. */
export const shelvesKey = (owner: Owner) => `sk:{${ownerTag(owner)}}:shelves`;

/** Sorted set: all who have threads, in JSON, by name. */
export const OWNERS = "sk:{owners}";

/** When threads must be checked. */
export interface SchedulePlace {
  /** Sorted set: the tenants that have any. */
  readonly tenants: string;
  /** With a tenant's tag behind it: its threads, a sorted set. */
  readonly threads: string;
  /** The entries that one call took, while it may be repeated. */
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

/** Documents of a kind that are due. An entry is the JSON of tenant and key, and of the user of a user's document. */
export const documentTurns = (kind: string) => schedulePlace(`turns:${kind}`);

/** Text: where the call lies that a token is for, as long as the token is good for anything. */
export const tokenKey = (tokenHash: string) => `sk:{token:${tokenHash}}`;

/** Text: the name that all processes of the database know. */
export const DEPLOYMENT = "sk:{deployment}";

/** Text, JSON: the format of the database's data. */
export const FORMAT_KEY = "sk:{format}";

/** Text: a secret that all of them know. */
export const SECRET = "sk:{secret}";

/** Written to see whether anything can be written; gone a second later. */
export const PROBE = "sk:{probe}";

/** A value that is written to wait for replicas. */
export const REPLICATED = "sk:{replicated}";

/** How the names of channels begin: they belong to the server, and not to one of its databases. */
export const channelsOf = (database: number) => `sk:${database}`;
export const runChannel = (channels: string, thread: string, runId: string) =>
  `${channels}:{${thread}}:${runId}`;
export const userChannel = (channels: string, owner: Owner) => `${channels}:{${ownerTag(owner)}}`;
export const callChannel = (channels: string) => `${channels}:{calls}`;
/** No process listens to it: a message proves that messages can be sent. */
export const probeChannel = (channels: string) => `${channels}:{probe}`;

/**
 * Usage of a tenant and one of its users. All keys of a tenant are in one slot, since they change together. `rate`: text, when all
 * requests so far are worked off. `spent`: hash, what was used in the newest day and month. `reserved`: hash, each reservation and
 * their sums; `due`: sorted set, when they expire. `usage`, `tenant_usage`: hashes, the days of the user and of all users by agent
 * and model. `users`: hash, the days of all users by their names.
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

/** `stored`: hash, the bytes of each thread of a tenant, and their sums. `due`: sorted set, until when each counts. */
export function storedKeys(owner: Owner) {
  const stored = `sk:{${tenantTag(owner)}}:stored`;
  return { stored, due: `${stored}:due` };
}

/** Sorted sets: what a tenant and one of its users hold of a thing, by when that is over. */
export function heldKeys(owner: Owner, thing: string) {
  const held = `sk:{${tenantTag(owner)}}:held:${thing}`;
  return { held, own_held: `${held}:${ownerTag(owner)}` };
}

/** That a call has counted what was spent, for as long as it may ask again. */
export const settledKey = (owner: Owner, call: string) => `sk:{${tenantTag(owner)}}:settled:${call}`;
