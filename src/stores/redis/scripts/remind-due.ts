// A thread whose run is alive has its note, also after Redis has lost it. One that is there stays as it is.

import { script } from "../script.ts";

export const remindDue = script<number>()({
  kind: "always",
  keys: ["tenants", "threads"],
  args: ["tenant", "thread", "wait"],
  lua: `
local due = string.format('%.0f', time() + wait)
if redis.call('ZADD', threads, 'NX', due, thread) == 1 then redis.call('ZADD', tenants, 'LT', due, tenant) end
return 1`,
});
