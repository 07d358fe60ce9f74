// Schedules when threads must be checked, tenant by tenant. `DUE` contains threads with runs, at the end of their
// lease, and `DEFERRED` contains threads with deferred calls. A schedule is in another cluster slot than the threads.
// An entry is therefore added before its thread is changed, and removed only if it has not changed since it was
// claimed. Entries may be stale, but no thread with work is missing.

import { randomId } from "../../../lib/random-id.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Due } from "../kernel.ts";
import type { RedisConnection } from "./connection.ts";
import { script } from "./connection.ts";
import { type SchedulePlace, tenantTag } from "./keys.ts";
import { ignoreErrors } from "./retention.ts";

export interface ScheduleEntry {
  readonly tenant: string;
  /** The thread's tag. */
  readonly thread: string;
  readonly time: string;
}

/** Methods that wait throw `unavailable`. */
export interface ThreadSchedule {
  /** Schedules a check of the thread in at most `wait` milliseconds. */
  add(tenant: string, thread: string, wait: number): Promise<ScheduleEntry>;
  /**
   * Like `add` with `holdMs`, but only if the tenant has fewer than `limit` other threads in the schedule. Returns
   * their number, and the entry if the thread had none.
   */
  addWithin(
    limit: number,
    tenant: string,
    thread: string,
  ): Promise<{ others: number; added?: ScheduleEntry }>;
  /** Adds an entry that is due in `holdMs`, unless the thread already has one. Does not wait for Redis. */
  ensure(owner: Owner, thread: string): void;
  /**
   * Claims up to `limit` threads to check now, exclusively for this caller. Other callers can claim them again unless
   * they are rescheduled within `holdMs`. Skips the tenants whose tags are in `except`.
   */
  claim(which: Due): Promise<ScheduleEntry[]>;
  /**
   * Returns the number of threads to check now, and by how many milliseconds the earliest is late. Examines at most
   * 1,000 tenants.
   */
  due(): Promise<{ readonly threads: number; readonly oldestMs: number }>;
  /**
   * Sets when the thread must be checked again; undefined means never. Keeps an entry that was added in the meantime.
   */
  reschedule(entry: ScheduleEntry, time: number | undefined): Promise<void>;
}

/**
 * Claimed threads are held for `holdMs`. If `aheadMs` is given, an entry due later than `aheadMs` from now counts as
 * due, because it was added before Redis's clock was set back.
 */
export function createSchedule(
  redis: RedisConnection,
  { tenants, threads, taken }: SchedulePlace,
  { holdMs, aheadMs }: { readonly holdMs: number; readonly aheadMs?: number },
): ThreadSchedule {
  const ahead = aheadMs ?? "";
  const keysOf = (tenant: string) => ({ tenants, threads: threads + tenant });

  return {
    async add(tenant, thread, wait) {
      const [, time = ""] = await redis.run(addEntry, keysOf(tenant), { tenant, thread, wait, most: "" });
      return { tenant, thread, time };
    },

    async addWithin(limit, tenant, thread) {
      const args = { tenant, thread, wait: holdMs, most: limit };
      const [others, time = "", isNew] = await redis.run(addEntry, keysOf(tenant), args);
      return isNew ? { others, added: { tenant, thread, time } } : { others };
    },

    ensure(owner, thread) {
      const tenant = tenantTag(owner);
      ignoreErrors(redis.run(ensureEntry, keysOf(tenant), { tenant, thread, wait: holdMs }));
    },

    async claim({ limit, except }) {
      const keys = { tenants, threads, taken: taken(randomId()) };
      const found = await redis.run(claimEntries, keys, {
        limit,
        hold: holdMs,
        ahead,
        except: JSON.stringify(except),
      });
      const claimed: ScheduleEntry[] = [];
      for (let at = 0; at < found.length; at += 3) {
        const [tenant = "", thread = "", time = ""] = found.slice(at, at + 3);
        claimed.push({ tenant, thread, time });
      }
      return claimed;
    },

    async due() {
      const [count = 0, oldest = 0] = await redis.run(countDue, { tenants, threads }, { ahead });
      return { threads: count, oldestMs: oldest };
    },

    async reschedule({ tenant, thread, time }, next) {
      await redis.run(rescheduleEntry, keysOf(tenant), { tenant, thread, claimed: time, due: next ?? "" });
    },
  };
}

/**
 * Input: `wait` in milliseconds; `most`, the maximum number of the tenant's threads including this one, or empty.
 * Output: the number of its other threads and, unless there are too many, the time of the entry and whether it is new.
 * An existing entry keeps its time if it is earlier. The time always differs from the previous one, so a concurrent
 * `rescheduleEntry` does not remove the entry. A repeated call moves it half a millisecond earlier.
 */
const addEntry = script<[others: number, time?: string, isNew?: number]>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "wait", "most"],
  lua: `
local due = time() + wait
local old = tonumber(redis.call('ZSCORE', threads, thread) or nil)
local others = redis.call('ZCARD', threads) - (old and 1 or 0)
if not old and most ~= '' and others + 1 > tonumber(most) then return { others } end
if old then due = math.min(due, old) end
if due == old then due = due - 0.5 end
local noted = string.format('%.1f', due)
redis.call('ZADD', threads, noted, thread)
redis.call('ZADD', tenants, 'LT', noted, tenant)
return { others, noted, old and 0 or 1 }`,
});

/** Adds an entry unless one exists, because the schedule may have been lost while the run is alive. */
const ensureEntry = script<number>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "wait"],
  lua: `
local due = string.format('%.0f', time() + wait)
if redis.call('ZADD', threads, 'NX', due, thread) == 1 then redis.call('ZADD', tenants, 'LT', due, tenant) end
return 1`,
});

/** `far`: a score after which nothing is added, or false. `first_due(set)`: the next of a tenant's threads to claim. */
const DUE_NOW = `
local now = time()
local far = ahead ~= '' and '(' .. string.format('%.0f', now + ahead)
local function first_due(set)
  local late = far and redis.call('ZRANGEBYSCORE', set, far, '+inf', 'LIMIT', 0, 1)[1]
  return late or redis.call('ZRANGEBYSCORE', set, '-inf', now, 'LIMIT', 0, 1)[1]
end
local function due_tenants(most)
  local found = far and redis.call('ZRANGEBYSCORE', tenants, far, '+inf', 'LIMIT', 0, most) or {}
  for _, tenant in ipairs(redis.call('ZRANGEBYSCORE', tenants, '-inf', now, 'LIMIT', 0, most)) do
    found[#found + 1] = tenant
  end
  return found
end`;

/**
 * Output: up to `limit` due entries, as tenant, thread, time …. Takes one entry of each tenant in turn, starting with
 * the least recently served tenant, and skips the tenants in `except`. Postpones the entries by `hold`, so no other
 * process claims them in the meantime. `taken` stores the claimed entries, so the call can be repeated. Builds the key
 * of a tenant's set itself, because all sets are in one slot.
 */
const claimEntries = script<string[]>()({
  kind: "always",
  keys: ["tenants", "threads", "taken"],
  args: ["limit", "hold", "ahead", "except"],
  lua: `${DUE_NOW}
local claimed = redis.call('LRANGE', taken, 0, -1)
if #claimed > 0 then return claimed end
local function claim(tenant)
  local set = threads .. tenant
  local one = first_due(set)
  if one then
    local time_held = string.format('%.0f', now + hold)
    redis.call('ZADD', set, time_held, one)
    redis.call('RPUSH', taken, tenant, one, time_held)
    for _, part in ipairs({ tenant, one, time_held }) do table.insert(claimed, part) end
  end
  local next = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  if next then redis.call('ZADD', tenants, first_due(set) and now or next, tenant)
  else redis.call('ZREM', tenants, tenant) end
end
local is_left_out, left_out = {}, cjson.decode(except)
for _, tenant in ipairs(left_out) do is_left_out[tenant] = true end
repeat
  local asked, room = 0, limit - #claimed / 3
  for _, tenant in ipairs(due_tenants(room + #left_out)) do
    if asked < room and not is_left_out[tenant] then
      claim(tenant)
      asked = asked + 1
    end
  end
until asked == 0 or #claimed == 3 * limit
redis.call('PEXPIRE', taken, hold)
return claimed`,
});

/** Output: the number of due entries, and how late the first one is. Builds the key of a tenant's set itself. */
const countDue = script<number[]>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["ahead"],
  lua: `${DUE_NOW}
local count, oldest = 0, now
for _, tenant in ipairs(due_tenants(1000)) do
  count = count + redis.call('ZCOUNT', threads .. tenant, '-inf', now)
  if far then count = count + redis.call('ZCOUNT', threads .. tenant, far, '+inf') end
  local first = redis.call('ZRANGE', threads .. tenant, 0, 0, 'WITHSCORES')[2]
  if first then oldest = math.min(oldest, tonumber(first)) end
end
return { count, math.floor(now - oldest) }`,
});

/** Moves an entry to `due`, or removes it if `due` is empty. Does nothing if the entry changed since its claim. */
const rescheduleEntry = script<number>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "claimed", "due"],
  lua: `
if tonumber(redis.call('ZSCORE', threads, thread) or nil) ~= tonumber(claimed) then return 0 end
if due ~= '' then
  redis.call('ZADD', threads, due, thread)
  redis.call('ZADD', tenants, 'LT', due, tenant)
  return 1
end
redis.call('ZREM', threads, thread)
if redis.call('ZCARD', threads) == 0 then redis.call('ZREM', tenants, tenant) end
return 1`,
});
