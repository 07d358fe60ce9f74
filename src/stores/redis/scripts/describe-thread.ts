// What a thread is, at one moment. `busy` while a run is active or waits.

import { script } from "../script.ts";
import { AHEAD, LIFE } from "./parts.ts";

type Text = string | null;

/** Nothing when there is no thread. */
export type ThreadReply = [
  ...[agent: Text, title: Text, metadata: Text, outcome: Text, created: Text, updated: Text],
  ...[messages: number, busy: number, life: string, parent: Text],
];

export const describeThread = script<ThreadReply | null>()({
  kind: "reads",
  keys: ["meta", "messages", "lease", "queue"],
  args: [],
  lua: `${AHEAD}${LIFE}
local found = redis.call('HMGET', meta, 'agent', 'title', 'metadata', 'outcome', 'created', 'updated')
if not found[3] then return false end
found[7], found[8] = redis.call('LLEN', messages), ahead() and 1 or 0
found[9], found[10] = life(), redis.call('HGET', meta, 'parent')
return found`,
});
