// How long threads stay, and the lists in which their owners find them.
//
// A thread's keys go together, by Redis's own clock. Its owner's list lies elsewhere, so it may say too much, never too
// little: a thread stands in it before it is made, and leaves it after it is gone, when somebody lists or adds.

import type { Owner } from "../../core/ids.ts";
import type { ThreadStatus } from "../../core/records.ts";
import type { Limits } from "../options.ts";
import type { Connection } from "./connection.ts";
import { threadKeys, threadsKey, threadTag } from "./keys.ts";
import { keepList } from "./scripts/keep-list.ts";
import { keepThread } from "./scripts/keep-thread.ts";
import { listThread } from "./scripts/list-thread.ts";
import { unlistThread } from "./scripts/unlist-thread.ts";
import { describeThread } from "./scripts.ts";

/** Threads are kept for so much longer, so that not every use of one has to be written down. */
const RESERVE = 1.1;
/** A list outlasts what is in it. */
const LIST_RESERVE = 2;
/** Nobody takes longer to make a thread once it is listed. */
const YOUNG_MS = 60_000;

export interface Lifetime {
  /** How long a thread stays that is left at `outcome`, as scripts take it. */
  ttlOf(outcome: ThreadStatus): string;
  /** A thread was used whose `life` a script has told: its time begins anew. Waits for nothing. */
  used(owner: Owner, id: string, life: string): void;
  /** A thread was changed: its time begins anew. Waits for nothing. */
  renew(owner: Owner, id: string): void;
  /** Before a thread may be made. Also looks after some of the list that may be gone. Throws `unavailable`. */
  list(owner: Owner, id: string): Promise<void>;
  /** After a thread was changed. Throws `unavailable`. */
  changed(owner: Owner, id: string): Promise<void>;
  /** A thread that was in the list, at `seen`, is not there. Waits for nothing. */
  unlist(owner: Owner, id: string, seen: string): void;
}

export function createLifetime(redis: Connection, limits: Limits): Lifetime {
  const idleMs = limits.threadTtlMs;
  const interruptedMs = Math.max(limits.interruptedTtlMs, idleMs);
  const ttl = timeText(idleMs * RESERVE);
  const interruptedTtl = timeText(interruptedMs * RESERVE);
  const listTtl = timeText(interruptedMs * LIST_RESERVE);

  const lifetime: Lifetime = {
    ttlOf: (outcome) => (outcome === "interrupted" ? interruptedTtl : ttl),

    used(owner, id, life) {
      const [left, outcome] = life.split(" ");
      const enough = outcome === "interrupted" ? interruptedMs : idleMs;
      if (Number(left) >= 0 && Number(left) < enough) lifetime.renew(owner, id);
    },

    renew(owner, id) {
      if (ttl === "") return;
      const args = { ttl, interrupted_ttl: interruptedTtl };
      quietly(redis.run(keepThread, threadKeys(threadTag(owner, id)), args));
      if (listTtl !== "") quietly(redis.run(keepList, { threads: threadsKey(owner) }, { ttl: listTtl }));
    },

    async list(owner, id) {
      const [one, seen, other, otherSeen] = await enter(owner, id);
      if (one && seen) quietly(lookAfter(owner, one, seen));
      if (other && otherSeen) quietly(lookAfter(owner, other, otherSeen));
    },

    async changed(owner, id) {
      await enter(owner, id);
    },

    unlist(owner, id, seen) {
      const args = { thread: id, seen, young: YOUNG_MS };
      quietly(redis.run(unlistThread, { threads: threadsKey(owner) }, args));
    },
  };
  return lifetime;

  function enter(owner: Owner, thread: string): Promise<string[]> {
    return redis.run(listThread, { threads: threadsKey(owner) }, { thread, ttl: listTtl });
  }

  async function lookAfter(owner: Owner, id: string, seen: string): Promise<void> {
    const found = await redis.run(describeThread, threadKeys(threadTag(owner, id)), {});
    if (!found) lifetime.unlist(owner, id, seen);
  }
}

/** A time as scripts take it: nothing is for ever. */
export const timeText = (ms: number) => (Number.isFinite(ms) ? String(Math.ceil(ms)) : "");

/** What can wait for the next one who comes by. */
export function quietly(work: Promise<unknown>): void {
  void work.catch(() => {});
}
