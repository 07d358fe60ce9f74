// A thread's slots as they were set, and what was merged into them since, at one moment.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

/** Each a list of field, value, field, value … */
export const readState = script<[set: string[], patches: string[], life: string]>()({
  kind: "reads",
  keys: ["meta", "state", "patches"],
  args: [],
  lua: `${LIFE}
return { redis.call('HGETALL', state), redis.call('HGETALL', patches), life() }`,
});
