// Where the rules lie that people's answers have made, and what of them is shown.

import { z } from "zod";
import type { Owner } from "./ids.ts";
import type { Item, Shelf } from "./items.ts";

/** The slot of a thread's state that holds those that were remembered for it: a list. */
export const SESSION_RULES = "grants";

/** Where those lie that a user has for all threads with an agent. */
export const userRulesShelf = (owner: Owner, agent: string): Shelf => ({
  owner,
  of: { agent },
  kind: "settings",
});

const PREFIX = "rule:";
export const userRuleKey = (id: string) => PREFIX + id;

/** Of what lies on that shelf, the rules; oldest first. */
export const userRulesIn = (items: readonly Item[]): unknown[] =>
  items.flatMap(({ key, value }) => (key.startsWith(PREFIX) ? [value] : [])).reverse();

/** A rule as it is shown. */
export const RememberedRule = z
  .object({
    id: z.string(),
    decision: z.enum(["allow", "deny", "ask"]),
    matcher: z.record(z.string(), z.unknown()).describe("The tool, and exactly these arguments."),
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
