// The order of the system prompt's blocks: what changes least stands first, so that a provider's cache serves as much
// of it as it can. Who adds a block need not know who else does.

import { xmlTag } from "../lib/text.ts";
import type { SystemBlock } from "./model.ts";
import type { Lineage } from "./records.ts";

const KINDS: readonly SystemBlock["cache"][] = ["static", "semi", "dynamic"];

/** Where a block stands that has no place of its own. */
const ANYWHERE = "instructions";
/** Within one kind. */
const PLACES: readonly string[] = [
  "identity",
  "completion_protocol",
  "notes_protocol",
  ANYWHERE,
  "behavioral_constraints",
  "project_context",
  "skills",
  "available_skills",
  "memory",
  "available_agents",
];

/** Blocks of one place keep their order. */
export function inOrder(blocks: readonly SystemBlock[]): SystemBlock[] {
  return blocks.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function placeOf({ id, cache, place = id }: SystemBlock): number {
  const known = PLACES.includes(place) ? place : ANYWHERE;
  return KINDS.indexOf(cache) * PLACES.length + PLACES.indexOf(known);
}

/**
 * What an agent that works for another one is called. It is the same in all its runs, yet `dynamic`: all that other
 * instances of the agent share stands before it.
 */
export function instanceBlock({ name }: Lineage): SystemBlock {
  const text = xmlTag("identity", `You are \`${name}\`, an agent that works for another one.`);
  return { id: "identity", text, cache: "dynamic" };
}
