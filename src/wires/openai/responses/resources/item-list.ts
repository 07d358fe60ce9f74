// Lists of items, as pages of OpenAI's API.

import { z } from "zod";
import { refused } from "../../given.ts";
import type { Item } from "../history.ts";

export const ListedItem = z.looseObject({ id: z.string(), type: z.string() });
export const ItemList = z.object({
  object: z.literal("list"),
  data: z.array(ListedItem),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});
export const ListQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().max(512).optional().describe("Id of an item."),
});

/**
 * Returns one page of `items`, which must be sorted oldest first. Throws `invalid_request` if no item has the id
 * `after`.
 */
export function listOf(items: readonly Item[], { limit, order, after }: z.infer<typeof ListQuery>) {
  const all = order === "asc" ? [...items] : [...items].reverse();
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw refused("after", `this list has no item \`${after}\`.`);
  const data = all.slice(start, start + limit);
  return {
    object: "list" as const,
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + limit < all.length,
  };
}
