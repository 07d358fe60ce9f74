// An item of a shelf, and how long the shelf stays, at one moment.

import { script } from "../script.ts";
import { LIFE } from "./parts.ts";

export const readItem = script<[item: string | null, life: string]>()({
  kind: "reads",
  keys: ["items", "meta"],
  args: ["key"],
  lua: `${LIFE}
return { redis.call('HGET', items, key), life() }`,
});
