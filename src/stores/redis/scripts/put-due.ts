// What became of a thread that was picked: it must be looked after again at `due`, or never. When it was noted since,
// the note stays.

import { script } from "../script.ts";

export const putDue = script<number>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "picked", "due"],
  lua: `
if tonumber(redis.call('ZSCORE', threads, thread) or nil) ~= tonumber(picked) then return 0 end
if due ~= '' then
  redis.call('ZADD', threads, due, thread)
  redis.call('ZADD', tenants, 'LT', due, tenant)
  return 1
end
redis.call('ZREM', threads, thread)
if redis.call('ZCARD', threads) == 0 then redis.call('ZREM', tenants, tenant) end
return 1`,
});
