// Decides what an agent may do, in this order:
//
// 1. a matching deny of global or agent scope;
// 2. the first match of the other rules: user before session before agent before global scope, within a scope by priority,
//    then in the given order;
// 3. the mode.
//
// Where rules deny commands or ask about them, a tool that writes a file that may say what commands run is decided as they are.
//
// Pure and synchronous; throws nothing once the policy is made.

import { z } from "zod";
import { firstChars } from "../../../lib/text.ts";
import type { ToolCall } from "../../core/message.ts";
import type { Tool } from "../../core/tool.ts";
import { type CompiledRule, compileRule } from "./match.ts";
import type { Decision, Rule, Scope } from "./rule.ts";
import { namedFile, runsByItself } from "./self-running.ts";
import { type Subject, subjectOf } from "./subject.ts";

export const Mode = z.enum(["default", "plan", "accept_edits", "dont_ask", "bypass"]);
export type Mode = z.infer<typeof Mode>;

export interface PolicyInput {
  readonly mode: Mode;
  readonly rules: readonly Rule[];
  /** Rules that name another agent or session are left out. */
  readonly agent: string;
  readonly session: string;
  /** Whether the agent reads a file as its instructions. */
  readonly instructs?: (path: string) => boolean;
}

export interface Policy {
  readonly mode: Mode;
  instructs(path: string): boolean;
  /** Denies that nothing overrides. */
  readonly absolute: readonly CompiledRule[];
  /** All others, in the order in which they are asked. */
  readonly ordered: readonly CompiledRule[];
  /** The first that denies commands, or asks about them. */
  readonly guard: CompiledRule | undefined;
  /** Whether a rule denies commands, allows them or asks about them. */
  readonly speaksOfCommands: boolean;
}

export interface Verdict {
  readonly decision: Decision;
  /** The one that decided; absent when the mode did. */
  readonly rule?: Rule;
  /** The rule or mode that decided, for traces. */
  readonly why: string;
  /** For the model when the call is denied, for the person when they are asked. */
  readonly message?: string | undefined;
}

const SCOPES = ["user", "session", "agent", "global"] as const;
type Kind = (typeof SCOPES)[number];

/** Throws a `SyntaxError` for a glob that `RuleSpec` would not have let pass. */
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

/** Takes milliseconds at most: the command is read once for all policies, and the work for each is counted. */
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
  // What the rule has to say may not be true of this command.
  return { ...verdict, why: `${verdict.why}; it ${NOT_UNDERSTOOD} ${suspicion}`, message: undefined };
}

const NOT_UNDERSTOOD = "is not fully understood and may run anything: it has";

/** Whether one of the rules names all commands of the call. Asked at most once. */
function namer(subject: Subject, rules: readonly CompiledRule[]): () => boolean {
  let isNamed: boolean | undefined;
  return () => {
    isNamed ??= rules.some(({ names }) => names(subject));
    return isNamed;
  };
}

/** Whether the rules deny the tool for all arguments. */
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

function byRule(rule: Rule): Verdict {
  const { decision, id, scope, message } = rule;
  const verb = { allow: "allows", deny: "denies", ask: "asks for" }[decision];
  const why = `rule \`${id}\` of ${kindOf(scope)} scope ${verb} it`;
  return { decision, rule, why, message };
}

const PLAN = "Plan mode: write operations not allowed";

/** How a rule about commands decides on a file that may say what they run. A rule for this very call comes before it. */
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
    why: `\`${firstChars(file, 100)}\` may say what commands run: ${why}`,
    message: undefined,
  };
}

function byMode({ mode, instructs }: Policy, { call, tool }: Subject): Verdict {
  const { readOnly, requiresPermission, category, destructive } = tool?.annotations ?? {};
  const because = (decision: Decision, why: string) => ({ decision, why: `mode ${mode}: ${why}` });
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
      return because(
        "ask",
        `\`${firstChars(instructing, 100)}\` is what the agent reads as its instructions`,
      );
    return because("allow", "the tool edits files");
  }
  return because(mode === "dont_ask" ? "deny" : "ask", "no rule speaks of it");
}

/** Why an allow for commands did not apply. */
function doubtIn(subject: Subject, { ordered }: Policy): string {
  const reading = subject.allowable();
  if (!reading || "commands" in reading) return "";
  const isMeant = ({ rule: { decision, matcher }, covers }: CompiledRule) =>
    decision === "allow" && (matcher.command_prefix || matcher.regex) && covers(subject) === "some";
  return ordered.some(isMeant) ? `; the command is not fully understood: it has ${reading.doubt}` : "";
}
