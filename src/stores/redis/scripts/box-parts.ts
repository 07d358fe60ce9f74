// What the scripts of the ledger of sandboxes do alike.

/** What is told of a sandbox by whoever enters or adopts it. */
export const ABOUT = ["tenant", "about", "keep_running", "keep_container", "keep_files"] as const;

/**
 * `old`: state, due, tenant and revision as they are. `put(state, used)`: the record as it is from now on, under the
 * caller's `revision`, and with it all that counts and orders sandboxes. `drop()`: there is none any more. A process
 * may take `ending_ms` over an end. Uses box, taken, due, running; id, revision, ending_ms.
 */
export const BOX = `
local found = redis.call('HMGET', box, 'state', 'due', 'tenant', 'revision', 'used')
local old = { state = found[1], due = tonumber(found[2] or nil), tenant = found[3], revision = found[4], used = found[5] }
local KEPT = { running = 'keep_running', stopped = 'keep_container', removed = 'keep_files' }
local function is_taken(state) return state == 'running' or state == 'ending' end
local function count(tenant, by)
  for _, whose in ipairs({ 'total', tenant }) do
    if redis.call('HINCRBY', taken, whose, by) == 0 then redis.call('HDEL', taken, whose) end
  end
end
local function is_being_ended() return old.state == 'ending' and old.due > time() end
local function drop()
  if is_taken(old.state) then count('of ' .. old.tenant, -1) end
  redis.call('ZREM', due, id)
  redis.call('ZREM', running, id)
  redis.call('UNLINK', box)
end
local function put(state, used, new)
  local tenant = new and new.tenant or old.tenant
  if is_taken(old.state) then count('of ' .. old.tenant, -1) end
  if is_taken(state) then count('of ' .. tenant, 1) end
  redis.call('HSET', box, 'state', state, 'used', used, 'revision', revision)
  for field, value in pairs(new or {}) do redis.call('HSET', box, field, value) end

  local at = time() + ending_ms
  if state ~= 'ending' then
    local kept = redis.call('HGET', box, KEPT[state])
    at = kept ~= '' and used + kept
  end
  if at then redis.call('HSET', box, 'due', string.format('%.0f', at)) else redis.call('HDEL', box, 'due') end
  if at then redis.call('ZADD', due, string.format('%.0f', at), id) else redis.call('ZREM', due, id) end
  if state == 'running' then redis.call('ZADD', running, used, id) else redis.call('ZREM', running, id) end
end`;

/** `told`: what the caller tells of the sandbox. Uses the arguments of ABOUT. */
export const TOLD = `
local told = { tenant = tenant, about = about, keep_running = keep_running, keep_container = keep_container,
  keep_files = keep_files }`;
