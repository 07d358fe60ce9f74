// Rules outside agents.yaml: rules in JSON files, and rules that were remembered from answers or added through the API.
// The latter are stored with the thread, or per user and agent.

import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { check, sentence } from "../../../lib/check.ts";
import { randomId } from "../../../lib/random-id.ts";
import { readText } from "../../../lib/read-text.ts";
import { firstChars } from "../../../lib/text.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { RememberOption } from "../../../protocol/interrupt.ts";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Item, ItemStore, Shelf } from "../../core/items.ts";
import type { ToolCall } from "../../core/message.ts";
import { setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { literal, MAX_RULE_CHARS, type PermissionDecision, type Rule, RuleSpec, type Scope } from "./rule.ts";

const MAX_RULES = 200;

/**
 * Returns the rules in a thread's state. They apply to this thread only, regardless of their scope. Skips
 * invalid entries.
 */
export function sessionRules(state: Run["state"]): Rule[] {
  return rulesAmong(z.array(z.unknown()).safeParse(state.get(SESSION_RULES)).data ?? [], "session");
}

/**
 * Adds a rule to a thread, and replaces a rule with the same id. Throws `limit_exceeded` if the thread has
 * too many rules.
 */
export async function* addSessionRule(run: Run, rule: Rule): Stream<void> {
  const others = sessionRules(run.state).filter(({ id }) => id !== rule.id);
  if (others.length >= MAX_RULES)
    throw new AppError(
      "limit_exceeded",
      `The thread already has ${MAX_RULES} rules, the maximum. Delete rules of the thread before you add another.`,
    );
  yield* setState(run, SESSION_RULES, [...others, rule]);
}

export async function* clearSessionRules(run: Run): Stream<void> {
  yield* setState(run, SESSION_RULES, []);
}

/** The rules of a thread, or of a user and an agent in all threads. */
export interface KeptRules {
  read(): Promise<Rule[]>;
  /** Adds a rule, and replaces a rule with the same id. Throws `limit_exceeded` for too many rules. */
  add(rule: Rule): Promise<void>;
}

export function keptRules(items: ItemStore, shelf: Shelf, scope: "session" | "user"): KeptRules {
  return {
    async read() {
      const rules: Rule[] = [];
      for (const value of rulesIn(await items.list(shelf))) {
        rules.push(...rulesAmong([value], scope));
        // Checking a rule takes milliseconds, and the list may contain hundreds of rules.
        await turn();
      }
      return rules;
    },
    async add(rule) {
      await items.put(shelf, { key: ruleKey(rule.id), value: rule });
    },
  };
}

function rulesAmong(values: readonly unknown[], scope: Extract<Scope, string>): Rule[] {
  return values.flatMap((each) => {
    const rule = RuleSpec.safeParse(each).data;
    return rule ? [{ ...rule, scope }] : [];
  });
}

/**
 * Returns the rule that remembers an answer to the call. By default, the rule applies to exactly this tool and these
 * arguments. Rules for the same calls share an id. Throws `invalid_request` if the arguments are too long to be stored.
 */
export function ruleFor(
  call: ToolCall,
  decision: PermissionDecision,
  scope: Scope,
  option: RememberOption = { remember_as: "call" },
): Rule {
  const { name, args } = call;
  const { remember_as, command_prefix } = option;
  const tool = literal(name);
  if (remember_as !== "call") {
    const matcher = remember_as === "command" && command_prefix ? { tool, command_prefix } : { tool };
    return { id: answerId([name, remember_as, command_prefix]), scope, priority: 0, matcher, decision };
  }
  const text = JSON.stringify(args);
  if (text.length > MAX_RULE_CHARS)
    throw new AppError(
      "invalid_request",
      `The call has ${text.length} characters of arguments; at most ${MAX_RULE_CHARS} can be remembered.`,
    );
  const description = firstChars(`${name} ${text}`, 200);
  const matcher = { tool, arguments: args };
  return { id: answerId([name, args]), scope, priority: 0, matcher, decision, description };
}

const answerId = (about: readonly unknown[]) =>
  `answer-${createHash("sha256").update(JSON.stringify(about)).digest("hex").slice(0, 16)}`;

const MAX_BYTES = 1024 * 1024;

/**
 * Loads the rules in a file. Throws `config_invalid` with all problems, one per line, each with its file,
 * position and remedy.
 */
export async function loadRules(path: string): Promise<Rule[]> {
  const read = await readText(path, MAX_BYTES);
  if ("fault" in read) throw invalid(`${path}: the file ${read.fault}`);
  const checked = check(z.array(RuleSpec), parsed(read.text, path));
  if ("value" in checked) return checked.value;
  throw invalid(checked.faults.map((fault) => `${path}: ${sentence(fault)}`).join("\n"));
}

/**
 * Replaces the file atomically. Throws `config_invalid` for a rule with a `custom` condition, which a file cannot
 * contain.
 */
export async function saveRules(path: string, rules: readonly Rule[]): Promise<void> {
  const custom = rules.find(({ matcher }) => matcher.custom !== undefined);
  if (custom)
    throw invalid(`${path}: rule \`${custom.id}\` has a \`custom\` condition, which a file cannot contain`);
  const draft = `${path}.${randomId()}.draft`;
  try {
    await write(draft, `${JSON.stringify(rules, null, 2)}\n`);
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function write(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`${path}: must be JSON: ${messageOf(error)}`);
  }
}

const invalid = (message: string) => new AppError("config_invalid", message);

/** The key in a thread's state for a list of its rules, used if no item store exists. */
export const SESSION_RULES = "grants";

/** Returns the shelf with the rules of a thread. */
export const sessionRulesShelf = (owner: Owner, thread: string): Shelf => ({
  owner,
  of: { thread },
  kind: "settings",
});

/** Returns the shelf with the rules of a user and an agent, for all threads. */
export const userRulesShelf = (owner: Owner, agent: string): Shelf => ({
  owner,
  of: { agent },
  kind: "settings",
});

const PREFIX = "rule:";
export const ruleKey = (id: string) => PREFIX + id;

/** Returns the rules among these items, oldest first. */
export const rulesIn = (items: readonly Item[]): unknown[] =>
  items.flatMap(({ key, value }) => (key.startsWith(PREFIX) ? [value] : [])).reverse();

/** A rule as the API shows it. */
export const RememberedRule = z
  .object({
    id: z.string(),
    decision: z.enum(["allow", "deny", "ask"]),
    matcher: z.record(z.string(), z.unknown()).describe("A call matches if it meets all conditions."),
    priority: z.int().optional(),
    message: z.string().optional(),
    description: z.string().optional(),
  })
  .meta({ id: "RememberedRule" });
export type RememberedRule = z.infer<typeof RememberedRule>;

/** Returns rules as the API shows them. Skips invalid entries. */
export function shownRules(rules: unknown): RememberedRule[] {
  return (z.array(z.unknown()).safeParse(rules).data ?? []).flatMap(
    (each) => RememberedRule.safeParse(each).data ?? [],
  );
}
