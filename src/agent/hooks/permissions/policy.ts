// Decides what an agent may do, in this order:
//
// 1. a matching deny rule of global or agent scope.
// 2. the first match among the other rules. User scope comes before session, agent and global scope. Within a scope, rules are
//    sorted by priority, then by the given order.
// 3. the mode.
//
// If rules deny or ask for commands, they also decide on a tool that writes a file which may determine the commands that run.
//
// All functions are pure and synchronous. None throws once the policy has been created.

import { z } from "zod";
import { firstChars } from "../../../lib/text.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { type CompiledRule, compileRule } from "./match.ts";
import type { PermissionDecision, Rule, Scope } from "./rule.ts";
import { namedFile, runsByItself } from "./self-running.ts";
import { type Subject, subjectOf } from "./subject.ts";

export const Mode = z.enum(["default", "plan", "accept_edits", "dont_ask", "bypass"]);
export type Mode = z.infer<typeof Mode>;

export interface PolicyInput {
  readonly mode: Mode;
  readonly rules: readonly Rule[];
  /** Rules for other agents or sessions are excluded. */
  readonly agent: string;
  readonly session: string;
  /** Returns true if the agent reads the file as its instructions. */
  readonly instructs?: (path: string) => boolean;
}

export interface Policy {
  readonly mode: Mode;
  instructs(path: string): boolean;
  /** The deny rules that nothing overrides. */
  readonly absolute: readonly CompiledRule[];
  /** All other rules, in the order of evaluation. */
  readonly ordered: readonly CompiledRule[];
  /** The first rule that denies or asks for commands. */
  readonly guard: CompiledRule | undefined;
  /** True if any rule denies, allows or asks for commands. */
  readonly speaksOfCommands: boolean;
}

export interface Verdict {
  readonly decision: PermissionDecision;
  /** The rule that decided. Undefined if the mode decided. */
  readonly rule?: Rule;
  /** The rule or mode that decided, for traces. */
  readonly why: string;
  /** The text for the model if the call is denied, or for the person if it needs approval. */
  readonly message?: string | undefined;
}

const SCOPES = ["user", "session", "agent", "global"] as const;
type Kind = (typeof SCOPES)[number];

/** Throws a `SyntaxError` for a glob that `RuleSpec` would reject. */
export function makePolicy({ mode, rules, agent, session, instructs = () => false }: PolicyInput): Policy {
  const compiled = rules.filter(({ scope }) => isOf(scope, { agent, session })).map(compileRule);
  const ordered = compiled.toSorted(
    (a, b) => rank(a.rule) - rank(b.rule) || b.rule.priority - a.rule.priority,
  );
  const absolute = ordered.filter(({ rule }) => isAbsolute(rule));
  const others = ordered.filter(({ rule }) => !isAbsolute(rule));
  const speaking = [...absolute, ...others].filter(({ speaksOfCommands }) => speaksOfCommands);
  const guard = speaking.find(({ rule }) => rule.decision !== "allow");
  return { mode, instructs, absolute, ordered: others, guard, speaksOfCommands: speaking.length > 0 };
}

function isOf(scope: Scope, place: { readonly agent: string; readonly session: string }): boolean {
  if (typeof scope === "string") return true;
  return "agent" in scope ? scope.agent === place.agent : scope.session === place.session;
}

function kindOf(scope: Scope): Kind {
  if (typeof scope === "string") return scope;
  return "agent" in scope ? "agent" : "session";
}

const rank = ({ scope }: Rule) => SCOPES.indexOf(kindOf(scope));

const isOperators = ({ scope }: Rule) => kindOf(scope) === "global" || kindOf(scope) === "agent";

const isAbsolute = (rule: Rule) => rule.decision === "deny" && isOperators(rule);

export const decide = (call: ToolCall, tool: Tool | undefined, policy: Policy): Verdict =>
  decideOn(subjectOf(call, tool), policy);

/**
 * Decides a call. This takes a few milliseconds at most, because the command is read once for all policies
 * and the work of each policy is limited.
 */
export function decideOn(subject: Subject, policy: Policy): Verdict {
  subject.begin();
  const isNamed = namer(subject, policy.ordered);
  const isNamedByOperator = namer(
    subject,
    policy.ordered.filter(({ rule }) => isOperators(rule)),
  );
  const found =
    policy.absolute.find(({ matches }) => matches(subject, isNamedByOperator)) ??
    policy.ordered.find(({ matches }) => matches(subject, isNamed));
  const own = found ? byRule(found.rule) : byMode(policy, subject);
  const verdict = (own.decision === "allow" && asCommand(subject, policy, own.rule)) || own;
  if (verdict.decision === "ask" && policy.mode === "dont_ask")
    return { ...verdict, decision: "deny", why: `${verdict.why}, and mode dont_ask does not ask` };
  if (verdict.decision === "allow") return verdict;
  const suspicion = found && !isNamed() ? found.doubts(subject) : undefined;
  if (suspicion === undefined) return { ...verdict, why: verdict.why + doubtIn(subject, policy) };
  // The rule's own message may not apply to this command.
  return { ...verdict, why: `${verdict.why}; it ${NOT_UNDERSTOOD} ${suspicion}`, message: undefined };
}

const NOT_UNDERSTOOD = "is not fully understood and may run anything: it has";

/**
 * Returns a function that is true if one of the rules names all commands of the call. It evaluates the rules
 * at most once.
 */
function namer(subject: Subject, rules: readonly CompiledRule[]): () => boolean {
  let isNamed: boolean | undefined;
  return () => {
    isNamed ??= rules.some(({ names }) => names(subject));
    return isNamed;
  };
}

/** True if the rules deny the tool for all arguments. */
export function isDeniedForGood(name: string, tool: Tool | undefined, policy: Policy): boolean {
  const subject = subjectOf({ id: "", name, args: {} }, tool);
  if (policy.absolute.some(({ covers }) => covers(subject) === "all")) return true;
  for (const { rule, covers } of policy.ordered) {
    const covered = covers(subject);
    if (covered === "none") continue;
    if (rule.decision !== "deny") return false;
    if (covered === "all") return true;
  }
  return false;
}

/** True if the rules or the mode allow the tool for all arguments. */
export function isAllowedForAll(name: string, tool: Tool | undefined, policy: Policy): boolean {
  const subject = subjectOf({ id: "", name, args: {} }, tool);
  if (policy.absolute.some(({ covers }) => covers(subject) !== "none")) return false;
  for (const { rule, covers } of policy.ordered) {
    const covered = covers(subject);
    if (covered === "none") continue;
    if (rule.decision !== "allow") return false;
    if (covered === "all") return true;
  }
  return byMode(policy, subject).decision === "allow";
}

function byRule(rule: Rule): Verdict {
  const { decision, id, scope, message } = rule;
  const verb = { allow: "allows", deny: "denies", ask: "asks for" }[decision];
  const why = `rule \`${id}\` of ${kindOf(scope)} scope ${verb} it`;
  return { decision, rule, why, message };
}

const PLAN = "Plan mode: write operations not allowed";

/**
 * Applies rules about commands to a file that may determine the commands that run. A rule that allows this
 * exact call takes precedence.
 */
function asCommand({ call, tool }: Subject, policy: Policy, allowing?: Rule): Verdict | undefined {
  if (tool?.annotations.category !== "write") return undefined;
  const { guard } = policy;
  const file = guard && namedFile(call, runsByItself);
  if (!guard || file === undefined) return undefined;
  const isMeant = allowing?.matcher.arguments !== undefined || allowing?.matcher.regex !== undefined;
  if (allowing && isMeant && (isOperators(allowing) || guard.rule.decision === "ask")) return undefined;
  const { why, ...verdict } = byRule(guard.rule);
  return {
    ...verdict,
    why: `\`${firstChars(file, 100)}\` may determine which commands run: ${why}`,
    message: undefined,
  };
}

function byMode({ mode, instructs }: Policy, { call, tool }: Subject): Verdict {
  const { readOnly, requiresPermission, category, destructive } = tool?.annotations ?? {};
  const because = (decision: PermissionDecision, why: string) => ({ decision, why: `mode ${mode}: ${why}` });
  if (mode === "bypass") return because("allow", "everything is allowed");
  if (mode === "plan")
    return (readOnly && !destructive) || category === "plan"
      ? because("allow", "the tool changes nothing")
      : { ...because("deny", "the tool may change something"), message: PLAN };
  if (requiresPermission === false) return because("allow", "the tool needs no permission");
  if (mode === "accept_edits" && category === "write" && !destructive) {
    const running = namedFile(call, runsByItself);
    if (running !== undefined)
      return because("ask", `\`${firstChars(running, 100)}\` is executed without being named in a command`);
    const instructing = namedFile(call, instructs);
    if (instructing !== undefined)
      return because("ask", `\`${firstChars(instructing, 100)}\` contains instructions for the agent`);
    return because("allow", "the tool edits files");
  }
  return because(mode === "dont_ask" ? "deny" : "ask", "no rule matches it");
}

/** Explains why an allow rule for commands did not apply. */
function doubtIn(subject: Subject, { ordered }: Policy): string {
  const reading = subject.allowable();
  if (!reading || "commands" in reading) return "";
  const isMeant = ({ rule: { decision, matcher }, covers }: CompiledRule) =>
    decision === "allow" && (matcher.command_prefix || matcher.regex) && covers(subject) === "some";
  return ordered.some(isMeant) ? `; the command is not fully understood: it has ${reading.doubt}` : "";
}
