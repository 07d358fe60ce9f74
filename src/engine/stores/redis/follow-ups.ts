// Writes outside the thread's slot that follow from a change of the thread: schedules, the owner's list, and call
// tokens.

import type { DeferredCall } from "../../../agent/core/deferred-calls.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Lookups, Write } from "../thread-head.ts";
import type { StoreContext } from "./context.ts";
import { tenantTag, tokenKey } from "./keys.ts";
import type { RedisView } from "./records.ts";
import { ignoreErrors } from "./retention.ts";
import type { ScheduleEntry } from "./schedule.ts";

/** Allows for differing clocks and for repeated deliveries. */
const TOKEN_RESERVE_MS = 60_000;

/** The value stored for a token: its call. */
export type CallPlace = [tenantTag: string, threadTag: string, callId: string];

export interface CommittedChange {
  readonly owner: Owner;
  readonly tag: string;
  readonly id: string;
  readonly writes: readonly Write[];
  readonly view: RedisView;
}

interface FollowUps {
  /** Writes the data that must exist before the thread refers to it. */
  prepare(
    change: CommittedChange,
    lookups: Lookups,
    keepsOrder: boolean,
  ): Promise<{ noted: Promise<ScheduleEntry | undefined> }>;
  /** Carries out the writes outside the thread's slot, after the thread was changed at the time `at`. */
  followUp(change: CommittedChange, at: number): Promise<void>;
}

export function followUps(context: StoreContext): FollowUps {
  const { redis, replicas, limits, retention, runSchedule, callSchedule } = context;
  const { leaseMs } = limits;
  return { prepare, followUp };

  async function prepare(
    { owner, tag, id, writes, view }: CommittedChange,
    { busyThreads }: Lookups,
    keepsOrder: boolean,
  ): Promise<{ noted: Promise<ScheduleEntry | undefined> }> {
    const tenant = tenantTag(owner);
    let noted: Promise<ScheduleEntry | undefined> = Promise.resolve(undefined);
    if (find(writes, "add_run")) {
      ignoreErrors(retention.list(owner, id));
      if (!busyThreads) noted = runSchedule.add(tenant, tag, leaseMs);
      // If this fails, the next `ensure` makes up for it.
      if (keepsOrder) ignoreErrors(noted);
      else await noted;
    } else if (find(writes, "create_thread")) await retention.list(owner, id);
    const due = find(writes, "put_call")?.due_at;
    if (due !== undefined) await callSchedule.add(tenant, tag, Math.max(due - view.now, leaseMs));
    return { noted };
  }

  async function followUp({ owner, tag, id, writes }: CommittedChange, at: number): Promise<void> {
    const put = find(writes, "put_call");
    if (find(writes, "add_run")) {
      runSchedule.ensure(owner, tag);
      await replicas.confirm();
    }
    if (find(writes, "describe_thread")) await retention.changed(owner, id);
    // The change is complete, even if the owner's list cannot be updated.
    if (find(writes, "clear_thread") ?? find(writes, "cancel_run"))
      await retention.changed(owner, id).catch(() => {});
    if (find(writes, "clear_thread") ?? put?.call.reply) retention.renew(owner, id);
    for (const write of writes)
      if (write.write === "drop_call" && write.token_hash !== put?.call.token_hash)
        ignoreErrors(redis.ask((client) => client.unlink(tokenKey(write.token_hash))));
    if (put?.call.state === "sent") await keepToken(tag, put.call, at);
    // Otherwise, the thread is found one lease later.
    if (put?.due_at !== undefined && put.due_at <= at)
      await callSchedule.add(tenantTag(owner), tag, 0).catch(() => {});
  }

  async function keepToken(
    tag: string,
    { owner, call_id, expires_at, token_hash }: DeferredCall,
    now: number,
  ): Promise<void> {
    const place = JSON.stringify([tenantTag(owner), tag, call_id] satisfies CallPlace);
    const ms = Math.max(Date.parse(expires_at) - now, 0) + TOKEN_RESERVE_MS;
    await redis.ask((client) => client.set(tokenKey(token_hash), place, "PX", ms));
  }
}

export function find<Name extends Write["write"]>(
  writes: readonly Write[],
  name: Name,
): Extract<Write, { write: Name }> | undefined {
  return writes.find((write): write is Extract<Write, { write: Name }> => write.write === name);
}
