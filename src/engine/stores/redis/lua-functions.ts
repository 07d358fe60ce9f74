// Lua functions that several scripts use.

/**
 * `held` and `about`: the thread's lease, and the owner, outcome, version and `more` from its `meta`. `seen()`: a text
 * that changes with every commit on the thread and with the end of its run. Empty if there is no thread. Uses lease,
 * meta.
 */
export const headOf = (...more: readonly string[]) => `
local held = redis.call('HMGET', lease, 'run', 'attempt', 'epoch', 'released', 'stop', 'until', 'seq')
local about = redis.call('HMGET', meta, ${["owner", "outcome", "version", ...more].map((name) => `'${name}'`).join(", ")})
local function seen()
  return about[1] and (held[1] or '') .. ' ' .. (about[3] or 0) or ''
end`;

/** `run_view(run)`: a RunReply. Uses runs; held, which begins with the lease's run and attempt. */
export const RUN_VIEW = `
local function run_view(run)
  local made = redis.call('HMGET', runs, run, 'end:' .. run)
  return { run, made[1], made[2], held[1] == run and held[2] }
end`;

/**
 * `expire(ms)`: all keys of an idle thread expire at the same moment; never if `ms` is empty. `persist()` undoes it.
 * Every key of the script must belong to the thread.
 */
export const LIFETIME = `
local function persist()
  if redis.call('PTTL', meta) == -1 then return end
  for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
end
local function expire(ms)
  if ms == '' then return persist() end
  local now = redis.call('TIME')
  local at = now[1] * 1000 + math.floor(now[2] / 1000) + ms
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, string.format('%.0f', at)) end
end`;

/**
 * `message_bytes()`: bytes of the thread's messages. `texts_from(place)`: bytes of the messages from an index on.
 * `count_bytes(bytes)`: records them. Uses meta, messages.
 */
export const MESSAGE_BYTES = `
local function texts_from(place)
  local bytes, step = 0, 64
  for at = place, redis.call('LLEN', messages) - 1, step do
    for _, text in ipairs(redis.call('LRANGE', messages, at, at + step - 1)) do bytes = bytes + #text end
  end
  return bytes
end
local function message_bytes()
  return tonumber(redis.call('HGET', meta, 'bytes') or 0)
end
local function count_bytes(bytes)
  redis.call('HSET', meta, 'bytes', string.format('%.0f', bytes))
end`;

/** `ttl_and_outcome()`: the thread's PTTL and outcome, in the form that `Retention.used` takes. Uses meta. */
export const TTL = `
local function ttl_and_outcome()
  return redis.call('PTTL', meta) .. ' ' .. (redis.call('HGET', meta, 'outcome') or '')
end`;

/**
 * `append(epoch, seq, rows, from, to)`: adds rows (a number of entries, their text, …) to the run's stream and
 * publishes them. Returns the new last seq. Redis refuses the ids of older epochs. Uses events; publish, channel.
 */
export const APPEND = `
local function append(epoch, seq, rows, from, to)
  for at = from, to, 2 do
    seq = seq + rows[at]
    local id = string.format('%s-%.0f', epoch, seq)
    redis.call('XADD', events, id, 'n', rows[at], 'd', rows[at + 1])
    redis.call(publish, channel, id .. ' ' .. rows[at + 1])
  end
  return seq
end`;

/** `end_run(run, attempt, seq, epoch, batch, how)`: records that a run has ended, and how. Uses runs, requests. */
export const END_RUN = `
local function end_run(run, attempt, seq, epoch, batch, how)
  redis.call('HDEL', requests, run, 'by:' .. run)
  redis.call('HSET', runs, 'end:' .. run,
    string.format('%s %.0f %.0f %s %s %s', attempt, time(), seq, epoch, batch, how))
end`;

/** `delete_patches(name)`: deletes the patches of a slot. Uses patches. */
export const DELETE_PATCHES = `
local function delete_patches(name)
  if redis.call('HDEL', patches, name .. '=') == 0 then return end
  local prefix = name .. '/'
  for _, field in ipairs(redis.call('HKEYS', patches)) do
    if string.sub(field, 1, #prefix) == prefix then redis.call('HDEL', patches, field) end
  end
end`;

/**
 * `shorten(key, latest)`: shortens entries that end after `latest`, because they were added before the clock was set
 * back.
 */
export const SHORTEN = `
local function shorten(key, latest)
  local ends = string.format('%.0f', latest)
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. ends, '+inf')) do redis.call('ZADD', key, ends, each) end
end`;
