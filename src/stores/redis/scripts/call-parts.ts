// What the scripts of calls whose results come later do alike.

import { type CallChange, movesOf } from "../../../core/deferred-calls.ts";
import { STAY } from "./parts.ts";

/** A change of calls as an argument of the scripts: which state follows each state. */
export const movesText = (change: CallChange) =>
  movesOf(change)
    .map(([from, to]) => `${from}>${to};`)
    .join("");

/** `next_of(moves, state)`: the state that follows, or nothing when the change leaves it as it is. */
export const MOVES = `
local function next_of(moves, state)
  return string.match(';' .. moves, ';' .. state .. '>(%a+);')
end`;

/** `find(call)`: what is kept of it, but its result. Uses deferred. */
export const FIND = `
local function find(call)
  local text = redis.call('HGET', deferred, call)
  if not text then return nil end
  local state, expires, token, by, about = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (.*)$')
  return { state = state, expires = tonumber(expires), token = token, by = by, about = about }
end`;

/** And `put(call, found)`: that from now on. `view(call, found)`: all of it. And `stay`. Uses meta, deferred, replies. */
export const CALLS = `${STAY}${FIND}
local function put(call, found)
  local expires = string.format('%.0f', found.expires)
  local words = { found.state, expires, found.token, found.by, found.about }
  redis.call('HSET', deferred, call, table.concat(words, ' '))
end
local function view(call, found)
  return { found.state, found.about, redis.call('HGET', replies, call) }
end`;

/** A call: what it is at, what it was opened as, and its result once it was delivered. */
export type CallReply = [state: string, about: string, reply: string | null];
