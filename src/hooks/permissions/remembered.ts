// Where the rules lie that people have made, by their answers or over the API, and what of them is shown.

import { z } from "zod";
import type { Owner } from "../../core/ids.ts";
import type { Item, Shelf } from "../../core/items.ts";

/** The slot of a thread's state that holds those of the thread where no items are kept: a list. */
export const SESSION_RULES = "grants";

/** Where those of a thread lie. */
export const sessionRulesShelf = (owner: Owner, thread: string): Shelf => ({
  owner,
  of: { thread },
  kind: "settings",
});

/** Where those lie that a user has for all threads with an agent. */
export const userRulesShelf = (owner: Owner, agent: string): Shelf => ({
  owner,
  of: { agent },
  kind: "settings",
});

const PREFIX = "rule:";
export const ruleKey = (id: string) => PREFIX + id;

/** Of what lies on that shelf, the rules; oldest first. */
export const rulesIn = (items: readonly Item[]): unknown[] =>
  items.flatMap(({ key, value }) => (key.startsWith(PREFIX) ? [value] : [])).reverse();

/** A rule as it is shown. */
export const RememberedRule = z
  .object({
    id: z.string(),
    decision: z.enum(["allow", "deny", "ask"]),
    matcher: z
      .record(z.string(), z.unknown())
      .describe("All these conditions hold of a call that the rule is for."),
    priority: z.int().optional(),
    message: z.string().optional(),
    description: z.string().optional(),
  })
  .meta({ id: "RememberedRule" });
export type RememberedRule = z.infer<typeof RememberedRule>;

/** What is no rule is passed over. */
export function shownRules(rules: unknown): RememberedRule[] {
  return (z.array(z.unknown()).safeParse(rules).data ?? []).flatMap(
    (each) => RememberedRule.safeParse(each).data ?? [],
  );
}
