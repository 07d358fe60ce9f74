// Taking runs: for the first time, in their turn, or after whoever executed them is gone.

import type { Owner } from "../../core/ids.ts";
import type { Claim, Cursor, Lease, LogEntry, RunKey } from "../../core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import { crashedTooOften, stamp } from "../endings.ts";
import type { Engine } from "./engine.ts";
import { threadIdOf, threadKeys, threadTag } from "./keys.ts";
import type { Note } from "./notes.ts";
import { claimOf } from "./records.ts";
import type { ClaimReply } from "./scripts/replies.ts";
import { type TakeOverReply, takeOver } from "./scripts/take-over.ts";

/** Threads that are looked at at once. */
const AT_ONCE = 32;

/** All throw `unavailable`. */
export interface Claims {
  /** The run is this process's to write from here on. `note`: that of its thread, if it is known. */
  taken(threadId: string, reply: ClaimReply, note?: Note): Claim;
  /** A thread's run that nobody executes any more, or else its next waiting run, if the thread is free. */
  next(owner: Owner, threadId: string): Promise<Claim | undefined>;
  /** Runs that nobody executes, tenant by tenant, `limit` at most. Those that died too often are ended instead. */
  abandoned(limit: number): Promise<Claim[]>;
}

export function createClaims({ redis, due, writer, pages, limits }: Engine): Claims {
  const { leaseMs: lease_ms, maxAttempts: attempts } = limits;

  const claims: Claims = {
    taken(threadId, reply, note) {
      const claim = claimOf(threadId, reply);
      writer.begin(claim.lease, Number(reply[2]), note);
      return claim;
    },

    async next(owner, threadId) {
      return takenUp(threadId, await reachFor(threadTag(owner, threadId)));
    },

    async abandoned(limit) {
      const taken: Claim[] = [];
      if (graceMs() > 0) return taken;
      const until = performance.now() + lease_ms / 3;
      while (taken.length < limit && performance.now() < until) {
        const picked = await pick(Math.min(AT_ONCE, limit - taken.length), taken.length > 0);
        if (picked.length === 0) break;
        // What cannot be looked at now is picked again by somebody later; what is taken must be executed.
        const results = await Promise.allSettled(picked.map(lookAfter));
        taken.push(
          ...results.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value] : [])),
        );
      }
      return taken;
    },
  };
  return claims;

  /**
   * How much longer than said leases last: while Redis was away nobody could renew one, and those who are alive do so
   * first when it is back. What was over before it went away stays so.
   */
  function graceMs(): number {
    const { ms, ago } = redis.lastOutage;
    return ms > lease_ms / 2 && ago < lease_ms / 2 ? ms + ago : 0;
  }

  /** Throws `unavailable`, unless something is taken already. */
  async function pick(limit: number, isAnyTaken: boolean): Promise<Note[]> {
    try {
      return await due.pick(limit);
    } catch (error) {
      if (isAnyTaken) return [];
      throw error;
    }
  }

  async function lookAfter(picked: Note): Promise<Claim | undefined> {
    const found = await reachFor(picked.thread);
    if (found[0] === "idle" || found[0] === "held") await due.put(picked, found[1]);
    return takenUp(threadIdOf(picked.thread), found, picked);
  }

  function reachFor(thread: string): Promise<TakeOverReply> {
    const args = { lease_ms, attempts, by: randomId(), grace_ms: graceMs() };
    return redis.run(takeOver, threadKeys(thread), args);
  }

  async function takenUp(threadId: string, found: TakeOverReply, note?: Note): Promise<Claim | undefined> {
    if (found[0] === "idle" || found[0] === "held") return undefined;
    const claim = claims.taken(threadId, found[1], note);
    if (found[0] === "claimed") return claim;
    await giveUp(claim.lease, found[2]);
    return claims.next(claim.lease.owner, threadId);
  }

  async function giveUp(lease: Lease, died: number): Promise<void> {
    const entries = await allOf(lease);
    await writer.append(lease, crashedTooOften(died, entries, stamp(lease, limits.now())));
  }

  /** What a run said, as far as it is kept. */
  async function allOf(run: RunKey): Promise<LogEntry[]> {
    const entries: LogEntry[] = [];
    const { last } = (await pages.look(run)) ?? { last: 0 };
    let after: Cursor = { seq: Math.max(0, last - limits.eventsPerRun) };
    while (after.seq < last) {
      const page = await pages.read(run, after);
      entries.push(...(page?.entries ?? []));
      after = page?.entries.at(-1) ?? { seq: last };
    }
    return entries;
  }
}
