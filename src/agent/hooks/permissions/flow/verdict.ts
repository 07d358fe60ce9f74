// Decides a call by flow rules. A thread that has read text written by others may do less than other threads. No model takes
// part in the decision.

import { globMatcher } from "../../../../lib/glob.ts";
import { ANY, type FlowRule, type Reading } from "../../../core/flow.ts";

export interface FlowVerdict {
  readonly decision: "ask" | "deny";
  /** The reason as text, for the person, the model and the trace. */
  readonly why: string;
}

/** The maximum number of readings that a reason names. */
const MAX_NAMED = 3;

/**
 * Returns undefined if no rule applies to the call after these readings. A denial takes precedence over a
 * question.
 */
export function flowVerdict(
  tool: string,
  readings: readonly Reading[],
  rules: readonly FlowRule[],
): FlowVerdict | undefined {
  for (const decision of ["deny", "ask"] as const)
    for (const rule of rules) {
      if (!matchesAny(rule[decision] ?? [], tool)) continue;
      const found = readings.filter((each) => each.tool === ANY || matchesAny(rule.after, each.tool));
      if (found.length > 0) return { decision, why: reasonOf(found, rule) };
    }
  return undefined;
}

/** True if a rule can apply to the tool, depending on the readings. */
export const isSpokenOf = (tool: string, rules: readonly FlowRule[]): boolean =>
  rules.some(({ ask = [], deny = [] }) => matchesAny([...ask, ...deny], tool));

/** Returns the readings that any of the rules mentions. */
export const readingsOfRules = (readings: readonly Reading[], rules: readonly FlowRule[]): Reading[] =>
  readings.filter(({ tool }) => tool === ANY || rules.some(({ after }) => matchesAny(after, tool)));

const compiled = new Map<string, (path: string) => boolean>();
/** The maximum number of compiled patterns to keep. */
const MAX_COMPILED = 1000;

function matchesAny(patterns: readonly string[], tool: string): boolean {
  // A tool name is not a path, so `/` has no meaning in it.
  const name = tool.replaceAll("/", "_");
  return patterns.some((pattern) => matcherOf(pattern)(name));
}

/** Compiles each pattern once, because runs use the same rules for many calls. */
function matcherOf(pattern: string): (path: string) => boolean {
  const known = compiled.get(pattern);
  if (known) return known;
  if (compiled.size >= MAX_COMPILED) compiled.clear();
  const made = globMatcher(`./${pattern}`);
  compiled.set(pattern, made);
  return made;
}

/** Returns a reason such as "because it read example.com with `web_fetch`: pages are written by others". */
function reasonOf(found: readonly Reading[], { because }: FlowRule): string {
  const named = [...new Set(found.map(nameOf))];
  const more = named.length - MAX_NAMED;
  const list = [...named.slice(0, MAX_NAMED), ...(more > 0 ? [`${more} more`] : [])];
  const text = `because it read ${list.join(", ").replace(/, (?=[^,]+$)/, " and ")}`;
  return because === undefined ? text : `${text}: ${because}`;
}

function nameOf({ tool, about, through }: Reading): string {
  if (tool === ANY) return "from too many tools to list";
  const source = about === undefined ? `with \`${tool}\`` : `${about} with \`${tool}\``;
  return through === undefined ? source : `${source} (through ${through})`;
}
