// All items of a shelf, in no order, and how long the shelf stays, at one moment.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

/** Each item's key and the rest of it: key, item, key, item … */
export const listItems = script<[items: string[], life: string]>()({
  kind: "reads",
  keys: ["items", "meta"],
  args: [],
  lua: `${LIFE}
return { redis.call('HGETALL', items), life() }`,
});
