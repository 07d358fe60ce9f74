// Where a run's log stands, and a batch of what comes after an entry, at one moment. A batch ends once it has `count`
// entries or so many bytes, with the row that brings it there; its first row may begin before what was asked for.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

/**
 * `last` is the run's last seq; `state` says whether the run has not ended, or is `gone`, its events, when their time
 * is over. Nothing when there is no such run. Rows are id, text, id, text … `epochs` are those that wrote something, the
 * oldest first, each followed by the seq of its first entry; `epoch` is the one that may write.
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

-- Ids begin with the epoch.
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
    -- As many more as are needed, if they are like those before; few, as they may be larger.
    local share = math.min((count - entries) / math.max(entries, 1), (bytes - size) / math.max(size, 1))
    step = math.max(1, math.min(16, math.ceil(share * #rows / 2)))
  end
end
return { last, state, rows, life(), epoch, epochs }`,
});
