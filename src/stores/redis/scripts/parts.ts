// What several scripts do alike. Each part is made of local functions, and uses keys and arguments of the script by
// their names.

/** `view(run)`: its id, what it was made as, how it ended, and its attempt while it runs. Uses runs, lease. */
export const VIEW = `
local function view(run)
  local held = redis.call('HMGET', lease, 'run', 'attempt')
  local made = redis.call('HMGET', runs, run, 'end:' .. run)
  return { run, made[1], made[2], held[1] == run and held[2] }
end`;

/** `ahead()`: the run that a newcomer has to wait for, or false. Uses lease, queue. */
export const AHEAD = `
local function ahead()
  return redis.call('HGET', lease, 'run') or redis.call('LINDEX', queue, 0)
end`;

/**
 * `expire(ms)`: a thread on which nothing runs or waits goes, all of it at once, when its time is up; never, when
 * there is no time. `persist()`: until then it stays. Every key is the thread's.
 */
export const LIFETIME = `
local function expire(ms)
  if ms == '' then return end
  local now = redis.call('TIME')
  local at = now[1] * 1000 + math.floor(now[2] / 1000) + ms
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, string.format('%.0f', at)) end
end
local function persist()
  if redis.call('PTTL', meta) == -1 then return end
  for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
end`;

/**
 * `in_parts(command, key, list, from, to)`: one command with what lies between two places of a list, in several, since Lua
 * passes no more than some thousand arguments at once. Pairs stay together.
 */
export const IN_PARTS = `
local function in_parts(command, key, list, from, to)
  for at = from, to, 1000 do redis.call(command, key, unpack(list, at, math.min(at + 999, to))) end
end`;

/** `stay(key)`: a key that was just made goes with the thread. Uses meta. */
export const STAY = `
local function stay(key)
  local left = redis.call('PTTL', meta)
  if left >= 0 then redis.call('PEXPIRE', key, left) end
end`;

/** `life()`: how long the thread still stays, in ms (-1 for ever, -2 when there is none), and its outcome. Uses meta. */
export const LIFE = `
local function life()
  return redis.call('PTTL', meta) .. ' ' .. (redis.call('HGET', meta, 'outcome') or '')
end`;

/**
 * `hold(run, epoch, attempt, seq)`: gives the thread's lease to the caller, who goes by the name in \`by\`.
 * `begin(run)`: the same of a run that nobody has held yet. `claim()`: what the holder has to know. Uses meta, begun,
 * lease, requests, runs; by, lease_ms.
 */
export const CLAIM = `${VIEW}
local function hold(run, epoch, attempt, seq)
  redis.call('HSET', lease, 'run', run, 'epoch', epoch, 'attempt', attempt, 'seq', seq, 'since', seq, 'batch', 0,
    'by', by, 'until', time() + lease_ms)
end
local function begin(run)
  redis.call('RPUSH', begun, run)
  hold(run, 1, 1, 0)
end
local function claim()
  local held = redis.call('HMGET', lease, 'run', 'epoch', 'seq')
  return { redis.call('HGET', meta, 'owner'), held[2], held[3], redis.call('HGET', requests, held[1]), view(held[1]) }
end`;

/**
 * `say(epoch, seq, from, to)`: writes the rows that lie between two places of ARGV and delivers them; each is a
 * number of entries and their text. Returns the new last seq. Redis itself refuses an id of an older epoch. Uses
 * events; publish, channel.
 */
export const SAY = `
local function say(epoch, seq, from, to)
  for at = from, to, 2 do
    seq = seq + ARGV[at]
    local id = string.format('%s-%.0f', epoch, seq)
    redis.call('XADD', events, id, 'n', ARGV[at], 'd', ARGV[at + 1])
    redis.call(publish, channel, id .. ' ' .. ARGV[at + 1])
  end
  return seq
end`;

/** What every script that writes what a run says has to be told. */
export const WORDS = ["run", "epoch", "batch", "confirmed", "kept", "publish", "channel"] as const;

/**
 * The fence. `before`: the run's last seq. `held()`: whether the lease is the caller's, not given back, and Redis has not
 * forgotten what it had confirmed. `said()`: whether the batch is there already, from a call whose answer was lost.
 * `advance(seq)`: notes how far the run is, and lets go what nobody may read any more. Uses lease, events; run, epoch,
 * batch, confirmed, kept.
 */
export const FENCE = `
local fence = redis.call('HMGET', lease, 'run', 'epoch', 'seq', 'batch', 'since', 'until')
local before = tonumber(fence[3])
local function held()
  return fence[1] == run and fence[2] == epoch and fence[6] ~= '0' and before >= tonumber(confirmed)
end
local function said()
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
 * `change(from, added)`: carries out what events mean, from that place of ARGV to its end: first so many messages, each
 * an id and a text, then slots. A message joins the thread once, and leaves the inbox with that. A slot is set,
 * deleted, or patched: of a patch every member is kept by itself, with a number that gives their order, so that it
 * costs what it brings and not what the slot holds. What a patch deletes is remembered only where it was there before
 * all patches. Uses meta, messages, ids, state, patches, inbox.
 */
export const CHANGES = `
local function add(id, message)
  if redis.call('HSETNX', ids, id, redis.call('LLEN', messages)) == 1 then redis.call('RPUSH', messages, message) end
  redis.call('HDEL', inbox, id)
end
local function unpatch(name)
  if redis.call('HDEL', patches, name .. '=') == 0 then return end
  local prefix = name .. '/'
  for _, field in ipairs(redis.call('HKEYS', patches)) do
    if string.sub(field, 1, #prefix) == prefix then redis.call('HDEL', patches, field) end
  end
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
    if what == 'set' then redis.call('HSET', state, slot, ARGV[at - 1]) unpatch(name)
    elseif what == 'delete' then redis.call('HDEL', state, slot) unpatch(name)
    else
      local members = 2 * ARGV[at - 1]
      patch(slot, name, at, at + members - 1)
      at = at + members
    end
  end
  redis.call('HSET', meta, 'updated', time())
end`;

/** `record(run, attempt, seq, epoch, batch, how)`: that a run has ended, and how. Uses runs, requests, events. */
export const RECORD = `
local function record(run, attempt, seq, epoch, batch, how)
  redis.call('HDEL', requests, run, 'by:' .. run)
  redis.call('HSET', runs, 'end:' .. run,
    string.format('%s %.0f %.0f %s %s %s', attempt, time(), seq, epoch, batch, how))
end`;
