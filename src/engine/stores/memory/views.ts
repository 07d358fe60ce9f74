// Returns a thread with the values that a decision needs.

import { jsonCopy } from "../../../lib/json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { PAST } from "../fair-queue.ts";
import { type Lookups, runAhead, type StoredRun, type View } from "../thread-head.ts";
import { idsOf } from "./commit-events.ts";
import type { MemoryThreads } from "./memory-threads.ts";
import { type RunEntry, runOf, type ThreadEntry, toRecord } from "./records.ts";

export function viewOf(
  { limits, turns }: MemoryThreads,
  thread: ThreadEntry | undefined,
  owner: Owner,
  lookups: Lookups,
): View {
  const { key, run, next, message, last, inbox, call, calls: all, busyThreads } = lookups;
  const found = run === undefined ? undefined : thread && runOf(thread, run);
  const ahead = next && thread && runAhead(thread.head);
  const taken = ahead === undefined || !thread ? undefined : runOf(thread, ahead);
  const known = key === undefined ? undefined : thread?.runs.find((each) => each.key === key);
  const active = inbox && thread?.head.active && runOf(thread, thread.head.active.run);
  const kept = call === undefined ? undefined : thread?.deferred?.get(call);
  return {
    now: limits.now(),
    head: thread?.head,
    until: thread?.isHeld ? (turns.heldUntil(thread) ?? PAST) : 0,
    known: known && toRecord(known),
    run: found && storedRun(found),
    next: taken && storedRun(taken),
    hasMessage: message !== undefined && thread !== undefined && idsOf(thread).has(message),
    isLast: last !== undefined && thread?.messages.at(-1)?.id === last,
    inbox: active?.work?.inbox.map(({ id }) => id),
    call: kept && jsonCopy(kept.call),
    calls: all && thread?.deferred && [...thread.deferred.values()].map(({ call }) => call),
    busyThreads: busyThreads && turns.count(owner.tenant),
  };
}

const storedRun = (run: RunEntry): StoredRun => ({
  record: toRecord(run),
  request: jsonCopy(run.work?.request),
});
