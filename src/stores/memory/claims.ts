// Taking runs in memory: for the first time, in their turn, or after whoever executed them is gone.

import type { Claim } from "../../core/stores.ts";
import { jsonCopy } from "../../lib/json-copy.ts";
import { crashedTooOften } from "../endings.ts";
import type { Book } from "./book.ts";
import { isLive, type LiveRun, type ThreadEntry, toRecord } from "./entries.ts";
import { record, stampOf } from "./record.ts";

export interface Claims {
  /** The next waiting run of a thread, if the thread is free. */
  next(thread: ThreadEntry): Claim | undefined;
  /** The thread's run that nobody executes any more, or else the next. */
  left(thread: ThreadEntry): Claim | undefined;
  /** Runs that nobody executes, in their turn, `limit` at most. Those that died too often are ended instead. */
  abandoned(limit: number): Claim[];
}

export function createClaims(book: Book): Claims {
  return { next, left, abandoned };

  function next(thread: ThreadEntry): Claim | undefined {
    const run = thread.queue[0];
    if (thread.active || !run || !isLive(run)) return undefined;
    thread.queue.shift();
    thread.active = run;
    run.begun = ++thread.begunCount;
    book.touch(thread);
    return claim(run, run.attempt);
  }

  function left(thread: ThreadEntry): Claim | undefined {
    return book.turns.isHeld(thread) ? undefined : takeOver(thread);
  }

  function abandoned(limit: number): Claim[] {
    const claims: Claim[] = [];
    while (claims.length < limit) {
      const thread = book.turns.take();
      if (!thread) break;
      const taken = takeOver(thread);
      if (taken) claims.push(taken);
    }
    return claims;
  }

  function takeOver(thread: ThreadEntry): Claim | undefined {
    const run = thread.active;
    if (!run || !isLive(run)) return next(thread);
    const died = run.attempt - run.work.released;
    if (died < book.limits.maxAttempts) return claim(run, run.attempt + 1);
    record(book, run, crashedTooOften(died, run.log.entries, stampOf(book, run)));
    return next(thread);
  }

  function claim(run: LiveRun, attempt: number): Claim {
    run.status = "running";
    run.attempt = attempt;
    run.work.isHeld = true;
    const { owner, id } = run.thread;
    book.turns.hold(owner.tenant, run.thread);
    const lease = { owner: { ...owner }, thread_id: id, run_id: run.id, epoch: attempt };
    return { lease, run: toRecord(run), request: jsonCopy(run.work.request) };
  }
}
