// Permission rules as written in agents.yaml, in JSON files and in a thread's state.

import { createHash } from "node:crypto";
import { z } from "zod";
import { globMatcher } from "../../../lib/glob.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { sharedRegex } from "../../../lib/regex.ts";
import { firstChars } from "../../../lib/text.ts";
import { messageOf } from "../../core/errors.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { PREFIX, wordsOf } from "./shell/prefix.ts";
import { isNeverAllowed } from "./shell/programs.ts";

export const PermissionDecision = z.enum(["allow", "deny", "ask"]);
export type PermissionDecision = z.infer<typeof PermissionDecision>;

/**
 * The calls that a rule applies to. `agent`: calls of the agent that has the rule. `session`: calls in the thread that
 * has the rule. A name limits the rule to that agent or thread.
 */
export const Scope = z.union([
  z.enum(["global", "agent", "session", "user"]),
  z.strictObject({ agent: z.string().min(1) }),
  z.strictObject({ session: z.string().min(1) }),
]);
export type Scope = z.infer<typeof Scope>;

/** Returns a pattern that matches only this tool name. */
export const literal = (name: string) => name.replace(/[\\*?[\]{}]/g, "\\$&");

const ToolPattern = valid(z.string().min(1).max(200), globMatcher).describe(
  "Name of a tool, or a glob of names.",
);

const conditions = {
  category: z
    .enum(["read", "write", "execute", "network", "plan"])
    .optional()
    .describe("Category of the tool."),
  command_prefix: z
    .array(
      z
        .string()
        .max(200)
        .regex(
          PREFIX,
          "must be plain words that begin with a program, such as `git status`; it is not a pattern",
        ),
    )
    .min(1)
    .max(100)
    .optional()
    .describe("Words that the command must begin with. A list matches if one of its entries matches."),
  regex: valid(z.string().min(1), sharedRegex)
    .optional()
    .describe(
      "Regular expression (RE2) for each command, or for the arguments of other tools as JSON. `allow` matches the whole text, `deny` and `ask` match any part.",
    ),
  arguments: z.record(z.string(), z.unknown()).optional().describe("Exact arguments of the call."),
};

/** All given conditions must hold. */
const MatcherFields = z.strictObject({
  tool: ToolPattern.optional(),
  ...conditions,
  all: z.literal(true).optional().describe("Matches every call."),
});

/** `custom` is a condition that a program defines. It cannot be written to a file. */
export type Matcher = z.infer<typeof MatcherFields> & {
  readonly custom?: (call: ToolCall, tool: Tool | undefined) => boolean;
};

const about = {
  id: z.string().min(1).max(100).optional().describe("Name of the rule in traces."),
  priority: z.int().default(0).describe("Priority within the scope; the highest comes first."),
  message: z
    .string()
    .min(1)
    .optional()
    .describe("Text for the model when the rule denies a call, or for the person when it asks about one."),
  description: z.string().optional().describe("Note for people who read the rule."),
};

const RuleFields = z.strictObject({
  allow: ToolPattern.optional(),
  deny: ToolPattern.optional(),
  ask: ToolPattern.optional(),
  ...conditions,
  ...about,
  decision: PermissionDecision.optional().describe(
    "Long form: together with `matcher`, replaces `allow`, `deny` and `ask`.",
  ),
  matcher: MatcherFields.refine((matcher) => Object.keys(matcher).length > 0, "must name a condition")
    .optional()
    .describe("Conditions of the long form."),
});
type RuleFields = z.infer<typeof RuleFields>;

function checkForm(fields: RuleFields, context: z.RefinementCtx): void {
  if (!isOneForm(fields)) context.addIssue({ code: "custom", message: FORMS });
  else for (const fault of vainPrefixes(fields)) context.addIssue({ code: "custom", ...fault });
}

const FORMS =
  "must have exactly one of allow, deny, ask; or both decision and matcher, with all conditions in the matcher";

function isOneForm(fields: RuleFields): boolean {
  const { decision, matcher } = fields;
  const short = PermissionDecision.options.filter((each) => fields[each] !== undefined);
  if (decision === undefined && matcher === undefined) return short.length === 1;
  const isMixed = Object.keys(conditions).some((condition) => condition in fields);
  return decision !== undefined && matcher !== undefined && short.length === 0 && !isMixed;
}

/**
 * Finds prefixes that could never allow a call. Such a prefix is a mistake. If nothing reported the mistake,
 * it would be dangerous.
 */
function vainPrefixes({ allow, decision, matcher, command_prefix }: RuleFields) {
  if (allow === undefined && decision !== "allow") return [];
  const path = [...(matcher ? ["matcher"] : []), "command_prefix"];
  return (matcher?.command_prefix ?? command_prefix ?? []).flatMap((prefix, index) => {
    const [name = ""] = wordsOf(prefix);
    const message = `must not begin with \`${name}\`, which may run anything. Allow the command that it runs instead`;
    return isNeverAllowed(name) ? [{ path: [...path, index], message }] : [];
  });
}

export interface Rule {
  readonly id: string;
  readonly scope: Scope;
  /** The priority within the scope. The highest comes first. */
  readonly priority: number;
  readonly matcher: Matcher;
  readonly decision: PermissionDecision;
  readonly message?: string;
  readonly description?: string;
}

/** `{ ask: execute, command_prefix: [git] }`, or the long form with `decision` and `matcher`. */
export const RuleSpec = RuleFields.extend({ scope: Scope.default("agent").describe("Owner of the rule.") })
  .superRefine(checkForm)
  .transform(({ scope, ...fields }) => toRule(fields, scope));

/**
 * The maximum number of characters in a rule as JSON. The limit exists because every call reads the rules.
 */
export const MAX_RULE_CHARS = 16_384;

/**
 * A rule that a user adds through the API. Where it is stored decides which calls it applies to. Rules without an `id`
 * and with the same conditions get the same id.
 */
export const OwnRuleSpec = RuleFields.extend({
  id: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters from A-Z, a-z, 0-9, _, . and -")
    .optional()
    .describe(
      "Id of the rule. The rule replaces an existing rule with the same id. Default: derived from the conditions.",
    ),
})
  .superRefine(checkForm)
  .refine((fields) => JSON.stringify(fields).length <= MAX_RULE_CHARS, {
    message: `must have at most ${MAX_RULE_CHARS} characters as JSON`,
  })
  .transform((fields) => {
    const rule = toRule(fields, "session");
    return fields.id === undefined ? { ...rule, id: `rule-${hashOf(rule.matcher)}` } : rule;
  });

const hashOf = (matcher: Matcher) =>
  createHash("sha256").update(JSON.stringify(matcher)).digest("hex").slice(0, 16);

function toRule(fields: RuleFields, scope: Scope): Rule {
  const { allow, deny, ask, category, command_prefix, regex, arguments: args, ...rest } = fields;
  const short = omitUndefined({
    tool: allow ?? deny ?? ask,
    category,
    command_prefix,
    regex,
    arguments: args,
  });
  const { decision = allow === undefined ? (deny === undefined ? "ask" : "deny") : "allow" } = rest;
  const { matcher = short, id = nameOf(decision, matcher), priority, message, description } = rest;
  return { id, scope, priority, matcher, decision, ...omitUndefined({ message, description }) };
}

/** Throws a zod error for an invalid rule. */
export const ruleOf = (spec: z.input<typeof RuleSpec>): Rule => RuleSpec.parse(spec);

/** Returns the name of a rule without an id. */
function nameOf(decision: PermissionDecision, matcher: Matcher): string {
  const parts = Object.entries(matcher).map(([condition, value]) =>
    condition === "tool"
      ? value
      : `${condition} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return firstChars([decision, ...parts].join(" "), 100);
}

function valid(text: z.ZodString, compile: (text: string) => unknown): z.ZodString {
  return text.superRefine((value, context) => {
    try {
      compile(value);
    } catch (error) {
      context.addIssue({ code: "custom", message: `must be valid: it ${messageOf(error)}` });
    }
  });
}
