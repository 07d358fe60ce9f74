// Where a run's log stands, and a batch of what comes after an entry, at one moment. A batch ends once it has `count`
// entries or so many bytes; its first row may begin before what was asked for.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

/**
 * `last` is the run's last seq; `state` says whether the run has not ended, or is `gone`, its events, when their time
 * is over. Nothing when there is no such run. Rows are id, text, id, text …
 */
export type EventsReply = [last: number, state: "live" | "ended" | "gone", rows: string[], life: string];

export const readEvents = script<EventsReply | null>()({
  kind: "reads",
  keys: ["meta", "runs", "lease", "events"],
  args: ["run", "after", "count", "bytes", "kept", "retention"],
  lua: `${LIFE}
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

-- Ids begin with the epoch: that of the entry after \`after\` is the newest one that begins before it.
local function epoch_of(wanted)
  for each = epoch, 2, -1 do
    local first = redis.call('XRANGE', events, each .. '-0', '+', 'COUNT', 1)[1]
    if first and string.match(first[1], '%d+$') - first[2][2] + 1 <= wanted then return each end
  end
  return 1
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
      entries, size = entries + row[2][2], size + #row[2][4]
      rows[#rows + 1], rows[#rows + 2] = row[1], row[2][4]
    end
    -- As many more as are needed, if they are like those before.
    local share = math.min((count - entries) / math.max(entries, 1), (bytes - size) / math.max(size, 1))
    step = math.max(1, math.ceil(share * #rows / 2))
  end
end
return { last, state, rows, life() }`,
});
