// The Lua scripts for a run's events, on the streaming path. Only the lease's holder can write; its epoch fences the
// writes. Each batch is written once, even if calls are repeated in any order.

import { script } from "./connection.ts";
import { THREAD } from "./keys.ts";
import { APPEND, DELETE_PATCHES, END_RUN, LIFETIME, MESSAGE_BYTES, TTL } from "./lua-functions.ts";

/** Arguments of every script that writes events. */
const BATCH = ["run", "epoch", "batch", "confirmed", "kept", "publish", "channel"] as const;

/**
 * The fence. `before`: the run's last seq. `held()`: true if the caller has the lease and has not returned it, and
 * Redis has not lost confirmed entries. `is_written()`: true if an earlier call with a lost reply has written the
 * batch. `advance(seq)`: records the run's last seq and drops entries beyond the limit. Uses lease, events; run, epoch,
 * batch, confirmed, kept.
 */
const FENCE = `
local fence = redis.call('HMGET', lease, 'run', 'epoch', 'seq', 'batch', 'since', 'until')
local before = tonumber(fence[3])
local function held()
  return fence[1] == run and fence[2] == epoch and fence[6] ~= '0' and before >= tonumber(confirmed)
end
local function is_written()
  return fence[1] == run and fence[2] == epoch and tonumber(fence[4]) >= tonumber(batch)
end
local function advance(seq)
  redis.call('HSET', lease, 'seq', seq, 'batch', batch)
  local first = seq - kept + 1
  if math.floor(seq / 256) > math.floor(before / 256) and first > tonumber(fence[5]) then
    redis.call('XTRIM', events, 'MINID', '~', string.format('%s-%.0f', epoch, first))
  end
end`;

/**
 * `change(from, added)`: carries out the effects of events. From that index to its end, ARGV contains the messages
 * (their number, then an id and a text for each) and the changes of slots. A message is added to the thread once, and
 * is then removed from the inbox. A slot is set, deleted or patched.
 *
 * Each member of a patched slot is stored separately, with a number for its order, so the cost of a patch depends only
 * on its own size. A deletion by a patch is recorded only if the member existed before all patches. Uses meta,
 * messages, ids, state, patches, inbox.
 */
const CHANGES = `${DELETE_PATCHES}${MESSAGE_BYTES}
local function add(id, message)
  if redis.call('HSETNX', ids, id, redis.call('LLEN', messages)) == 1 then
    count_bytes(message_bytes() + #message)
    redis.call('RPUSH', messages, message)
  end
  redis.call('HDEL', inbox, id)
end
local function patch(slot, name, from, to)
  local number = redis.call('HINCRBY', patches, name .. '=', 1)
  local is_set = redis.call('HEXISTS', state, slot) == 1
  for at = from, to, 2 do
    local field, value = name .. '/' .. ARGV[at], ARGV[at + 1]
    local old = redis.call('HGET', patches, field)
    if value == 'null' and not is_set then redis.call('HDEL', patches, field)
    elseif old and string.sub(old, -5) ~= ' null' then
      redis.call('HSET', patches, field, string.match(old, '^%d+') .. ' ' .. value)
    else redis.call('HSET', patches, field, number .. ' ' .. value) end
  end
end
local function change(from, added)
  for at = from, from + 2 * added - 1, 2 do add(ARGV[at], ARGV[at + 1]) end
  local at = from + 2 * added
  while at <= #ARGV do
    local what, slot, name = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    at = at + 4
    if what == 'set' then redis.call('HSET', state, slot, ARGV[at - 1]) delete_patches(name)
    elseif what == 'delete' then redis.call('HDEL', state, slot) delete_patches(name)
    else
      local members = 2 * ARGV[at - 1]
      patch(slot, name, at, at + members - 1)
      at = at + members
    end
  end
  redis.call('HSET', meta, 'updated', time())
end`;

/** Appends events that change only the log. Output: the run's last seq, or nothing if the lease is lost. */
export const appendProgress = script<number | null>()({
  kind: "adds",
  keys: ["lease", "events"],
  args: BATCH,
  lua: `${FENCE}${APPEND}
if is_written() then return before end
if not held() then return false end
local seq = append(epoch, before, ARGV, REST, #ARGV)
advance(seq)
return seq`,
});

/** Appends events and changes the thread's messages and state with them. Output: like `appendProgress`. */
export const appendChanges = script<number | null>()({
  kind: "adds",
  keys: ["meta", "messages", "ids", "state", "patches", "lease", "inbox", "events"],
  args: [...BATCH, "rows", "added"],
  lua: `${FENCE}${APPEND}${CHANGES}
if is_written() then return before end
if not held() then return false end
local seq = append(epoch, before, ARGV, REST, REST + 2 * rows - 1)
advance(seq)
change(REST + 2 * rows, added)
return seq`,
});

/** `ended` with the last seq and the number of waiting runs, `left` with the messages of the inbox, or `lost`. */
export type EndReply = ["ended", seq: number, waiting: number] | ["left", string[]] | ["lost"];

/**
 * Appends the last events of a run, changes the thread with them and frees it. Output: EndReply. If the inbox has
 * messages that these events do not contain, changes nothing and returns these messages, so none is lost.
 */
export const appendEnd = script<EndReply>()({
  kind: "always",
  keys: [...THREAD, "events"],
  args: [...BATCH, "rows", "added", "how", "outcome", "retention", "ttl"],
  lua: `${FENCE}${APPEND}${CHANGES}${LIFETIME}${END_RUN}
local function repeated()
  local ended = redis.call('HGET', runs, 'end:' .. run)
  local seq, by, last = string.match(ended or '', '^%d+ %d+ (%d+) (%d+) (%d+) ')
  return by == epoch and last == batch and tonumber(seq)
end
local function left()
  local from, taken, found = REST + 2 * rows, {}, {}
  for at = from, from + 2 * added - 1, 2 do taken[ARGV[at]] = true end
  local entries = redis.call('HGETALL', inbox)
  for at = 1, #entries, 2 do
    if not taken[entries[at]] then table.insert(found, entries[at + 1]) end
  end
  return found
end
local seq = repeated()
if seq then return { 'ended', seq, redis.call('LLEN', queue) } end
if not held() then return { 'lost' } end
local messages_left = left()
if #messages_left > 0 then return { 'left', messages_left } end

seq = append(epoch, before, ARGV, REST, REST + 2 * rows - 1)
end_run(run, redis.call('HGET', lease, 'attempt'), seq, epoch, batch, how)
redis.call('UNLINK', lease, inbox)
change(REST + 2 * rows, added)
redis.call('HSET', meta, 'outcome', outcome)
local waiting = redis.call('LLEN', queue)
if waiting == 0 then expire(ttl) end
if retention ~= '' then redis.call('PEXPIRE', events, retention) end
return { 'ended', seq, waiting }`,
});

/**
 * `last` is the run's last seq. `state` is the end of the run, or `gone` if its events have expired. Returns nothing if
 * the run does not exist. Rows are id, text, id, text …. `epochs` lists the epochs that wrote entries, oldest first,
 * each with the seq of its first entry. `epoch` is the epoch that can write.
 */
export type EventsReply = [
  last: number,
  state: "live" | "ended" | "gone",
  rows: string[],
  life: string,
  epoch: number,
  epochs: number[],
];

export const readEvents = script<EventsReply | null>()({
  kind: "reads",
  keys: ["meta", "runs", "lease", "events"],
  args: ["run", "after", "count", "bytes", "kept", "retention"],
  lua: `${TTL}
if redis.call('HEXISTS', runs, run) == 0 then return false end
local last, epoch, state = 0, 1, 'live'
local ended, seq, by = string.match(redis.call('HGET', runs, 'end:' .. run) or '', '^%d+ (%d+) (%d+) (%d+) ')
local held = redis.call('HMGET', lease, 'run', 'seq', 'epoch')
if ended then
  last, epoch, state = tonumber(seq), tonumber(by), 'ended'
  if retention ~= '' and ended + retention <= time() then state = 'gone' end
elseif held[1] == run then
  last, epoch = tonumber(held[2]), tonumber(held[3])
end

-- Each id begins with the epoch.
local epochs, next_epoch = { 1, 1 }, 2
while next_epoch <= epoch do
  local row = redis.call('XRANGE', events, next_epoch .. '-0', '+', 'COUNT', 1)[1]
  if not row then break end
  local by, to = string.match(row[1], '(%d+)-(%d+)')
  epochs[#epochs + 1], epochs[#epochs + 2] = tonumber(by), to - row[2][2] + 1
  next_epoch = by + 1
end
local function epoch_of(seq)
  local found = 1
  for at = 1, #epochs, 2 do if epochs[at + 1] <= seq then found = epochs[at] end end
  return found
end

local rows, entries, size = {}, 0, 0
local wanted = after + 1
if state ~= 'gone' and tonumber(count) > 0 and wanted <= last and wanted > last - kept then
  local from = string.format('%d-%.0f', epoch_of(wanted), wanted)
  local step = 2
  while from and entries < tonumber(count) and size < tonumber(bytes) do
    local found = redis.call('XRANGE', events, from, '+', 'COUNT', step)
    from = found[step] and '(' .. found[step][1]
    for _, row in ipairs(found) do
      if entries >= tonumber(count) or size >= tonumber(bytes) then break end
      entries, size = entries + row[2][2], size + #row[2][4]
      rows[#rows + 1], rows[#rows + 2] = row[1], row[2][4]
    end
    -- Estimates from the previous rows how many more are needed. Reads only a few at once, because they may be larger.
    local share = math.min((count - entries) / math.max(entries, 1), (bytes - size) / math.max(size, 1))
    step = math.max(1, math.min(16, math.ceil(share * #rows / 2)))
  end
end
return { last, state, rows, ttl_and_outcome(), epoch, epochs }`,
});
