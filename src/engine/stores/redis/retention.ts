// Defines when threads expire, and maintains the list of each owner's threads.
//
// All keys of a thread expire together, by Redis's own clock. The owner's list is in another cluster slot. The list may
// contain expired threads, but no existing thread is ever missing, because a thread is added before it is created and
// removed after it has expired.

import type { ThreadStatus } from "../../../agent/core/records.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Limits } from "../options.ts";
import { type Position, standsBehind } from "../page.ts";
import type { RedisConnection } from "./connection.ts";
import { script } from "./connection.ts";
import { THREAD, threadKeys, threadsKey, threadTag } from "./keys.ts";
import { LIFETIME } from "./lua-functions.ts";
import type { RedisOwners } from "./owners.ts";

/** The factor by which threads are kept longer than their time to live, so that not every use has to be written. */
const RESERVE = 1.1;
/** The factor by which a list outlives its entries. */
const LIST_RESERVE = 2;
/** In milliseconds. Adding a thread to the list and then creating it takes less time than this. */
const YOUNG_MS = 60_000;
/** Redis's reply for the time to live of a missing key. */
const NO_THREAD = "-2";
/** The number of listed threads to check whenever a thread is added. */
const SAMPLE = 2;

export interface Retention {
  /** Returns how long a thread with this outcome is kept, in the form that the scripts expect. */
  ttlOf(outcome: ThreadStatus): string;
  /** The number of milliseconds for which the events of an ended run are kept. They also expire with their thread. */
  readonly eventsMs: number;
  /** Restarts the time to live of a thread whose `life` a script returned. Does not wait. */
  used(owner: Owner, id: string, life: string): void;
  /** Restarts the time to live of a changed thread. Does not wait. */
  renew(owner: Owner, id: string): void;
  /**
   * Call this before a thread may be created. Also checks some list entries whose threads may have expired. Throws
   * `unavailable`.
   */
  list(owner: Owner, id: string): Promise<void>;
  /** Call this after a thread was changed. Throws `unavailable`. */
  changed(owner: Owner, id: string): Promise<void>;
  /** Removes a thread that does not exist from the list, if its time in the list is still `seen`. Does not wait. */
  unlist(owner: Owner, id: string, seen: string): void;
}

export function createRetention(
  redis: RedisConnection,
  limits: Limits,
  owners: Pick<RedisOwners, "note">,
): Retention {
  const idleMs = limits.threadTtlMs;
  const interruptedMs = Math.max(limits.interruptedTtlMs, idleMs);
  const ttl = timeText(idleMs * RESERVE);
  const interruptedTtl = timeText(interruptedMs * RESERVE);
  const listTtl = timeText(interruptedMs * LIST_RESERVE);

  const retention: Retention = {
    eventsMs: Number.isFinite(limits.eventRetentionMs) ? limits.eventRetentionMs : interruptedMs * RESERVE,
    ttlOf: (outcome) => (outcome === "interrupted" ? interruptedTtl : ttl),

    used(owner, id, life) {
      const [left, outcome] = life.split(" ");
      if (left !== NO_THREAD) ignoreErrors(owners.note(owner));
      const enough = outcome === "interrupted" ? interruptedMs : idleMs;
      if (Number(left) >= 0 && Number(left) < enough) retention.renew(owner, id);
    },

    renew(owner, id) {
      const args = { ttl, interrupted_ttl: interruptedTtl };
      ignoreErrors(redis.run(keepThread, threadKeys(threadTag(owner, id)), args));
      const list = threadsKey(owner);
      ignoreErrors(
        redis.ask((client) => (listTtl === "" ? client.persist(list) : client.pexpire(list, listTtl))),
      );
    },

    async list(owner, id) {
      const noted = owners.note(owner);
      // Awaited below.
      ignoreErrors(noted);
      const [one, seen, other, otherSeen] = await enter(owner, id, SAMPLE);
      if (one && seen) ignoreErrors(lookAfter(owner, one, seen));
      if (other && otherSeen) ignoreErrors(lookAfter(owner, other, otherSeen));
      await noted;
    },

    async changed(owner, id) {
      await enter(owner, id, 0);
    },

    unlist(owner, id, seen) {
      const args = { thread: id, seen, young: YOUNG_MS };
      ignoreErrors(redis.run(unlistThread, { threads: threadsKey(owner) }, args));
    },
  };
  return retention;

  function enter(owner: Owner, thread: string, sample: number): Promise<string[]> {
    return redis.run(listThread, { threads: threadsKey(owner) }, { thread, ttl: listTtl, sample });
  }

  async function lookAfter(owner: Owner, id: string, seen: string): Promise<void> {
    const { meta } = threadKeys(threadTag(owner, id));
    if ((await redis.ask((client) => client.exists(meta))) === 0) retention.unlist(owner, id, seen);
  }
}

/** Formats a time for scripts. Empty means unlimited. */
export const timeText = (ms: number) => (Number.isFinite(ms) ? String(Math.ceil(ms)) : "");

/** Ignores the errors of work that the next caller repeats. */
export function ignoreErrors(work: Promise<unknown>): void {
  void work.catch(() => {});
}

// Restarts the time to live of an idle thread. Busy threads do not expire.
const keepThread = script<number>()({
  kind: "always",
  keys: THREAD,
  args: ["ttl", "interrupted_ttl"],
  lua: `${LIFETIME}
if redis.call('EXISTS', lease, queue) > 0 then return 0 end
expire(redis.call('HGET', meta, 'outcome') == 'interrupted' and interrupted_ttl or ttl)
return 1`,
});

// Adds a thread to its owner's list, or moves it to the time of its most recent change. The list outlives its threads.
/** Returns `sample` random entries of the list with their times. Some of these threads may have been deleted. */
const listThread = script<string[]>()({
  kind: "adds",
  keys: ["threads"],
  args: ["thread", "ttl", "sample"],
  lua: `
redis.call('ZADD', threads, 'GT', string.format('%.0f', time()), thread)
if ttl == '' then redis.call('PERSIST', threads) else redis.call('PEXPIRE', threads, ttl) end
if sample == '0' then return {} end
return redis.call('ZRANDMEMBER', threads, sample, 'WITHSCORES')`,
});

// Removes a deleted thread from its owner's list. Keeps the thread if it has changed since it was read, or changed so
// recently that it may be about to be created.
const unlistThread = script<number>()({
  kind: "always",
  keys: ["threads"],
  args: ["thread", "seen", "young"],
  lua: `
if redis.call('ZSCORE', threads, thread) ~= seen or time() - seen < tonumber(young) then return 0 end
return redis.call('ZREM', threads, thread)`,
});

// Reads an owner's threads from the owner's list.
const CHUNK = 100;

export interface TimedPosition extends Position {
  /** The thread's time in the list when it was read. */
  readonly seen: string;
}

/** Yields the entries after `start`, most recent change first, in chunks. Some threads may no longer exist. */
export async function* listed(
  redis: RedisConnection,
  owner: Owner,
  start: Position | undefined,
): AsyncGenerator<TimedPosition[], void, void> {
  let before = start;
  for (let skip = 0; ; ) {
    const place = { key: threadsKey(owner), newest: before?.updatedAt ?? "+inf", skip };
    const found = positions(
      await redis.ask((client) =>
        client.zrevrangebyscore(place.key, place.newest, "-inf", "WITHSCORES", "LIMIT", place.skip, CHUNK),
      ),
    );
    yield found.filter((each) => !before || standsBehind(before, each));
    if (found.length < CHUNK) return;
    // Counts only the entries with the same time as the previous one, and skips them by number.
    const last = found.at(-1);
    skip = last?.updatedAt === before?.updatedAt ? skip + CHUNK : 0;
    before = last;
  }
}

function positions(flat: readonly string[]): TimedPosition[] {
  const found: TimedPosition[] = [];
  for (let at = 0; at < flat.length; at += 2) {
    const [id = "", seen = ""] = flat.slice(at, at + 2);
    found.push({ id, seen, updatedAt: Number(seen) });
  }
  return found;
}
