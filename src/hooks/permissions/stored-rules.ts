// The rules that people have made: kept with the thread, or with the agent for all of the user's threads.

import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { AppError, messageOf } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import type { ToolCall } from "../../core/message.ts";
import { setState } from "../../core/run.ts";
import type { Item, ItemStore, Shelf } from "../../core/stores.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { check, sentence } from "../../lib/check.ts";
import { randomId } from "../../lib/random-id.ts";
import { readText } from "../../lib/read-text.ts";
import { firstChars } from "../../lib/text.ts";
import { type Decision, MAX_RULE_CHARS, type Rule, RuleSpec, type Scope } from "./rule.ts";

const MAX_RULES = 200;

/** Whatever scope is written there, they speak for this thread alone. What is no rule is passed over. */
export function sessionRules(state: Run["state"]): Rule[] {
  return rulesAmong(z.array(z.unknown()).safeParse(state.get(SESSION_RULES)).data ?? [], "session");
}

/** A rule with the same id is replaced. Throws `limit_exceeded` when there are too many. */
export async function* addSessionRule(run: Run, rule: Rule): Stream<void> {
  const others = sessionRules(run.state).filter(({ id }) => id !== rule.id);
  if (others.length >= MAX_RULES)
    throw new AppError(
      "limit_exceeded",
      `The thread has ${MAX_RULES} rules of its own already; clear them before another is remembered.`,
    );
  yield* setState(run, SESSION_RULES, [...others, rule]);
}

export async function* clearSessionRules(run: Run): Stream<void> {
  yield* setState(run, SESSION_RULES, []);
}

/** The rules of a thread, or those that a user has with an agent in all threads. */
export interface KeptRules {
  read(): Promise<Rule[]>;
  /** A rule with the same id is replaced. Throws `limit_exceeded` when there are too many. */
  add(rule: Rule): Promise<void>;
}

export function keptRules(items: ItemStore, shelf: Shelf, scope: "session" | "user"): KeptRules {
  return {
    async read() {
      const rules: Rule[] = [];
      for (const value of rulesIn(await items.list(shelf))) {
        rules.push(...rulesAmong([value], scope));
        // To check a rule takes milliseconds, and there may be hundreds.
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

// From one call to a rule for exactly that call, for an answer that is to be remembered.

/**
 * The same tool with the same arguments, nothing more. Two rules for the same call have the same id, whatever
 * they decide. Throws `invalid_request` for arguments that are too long to be kept.
 */
export function ruleFor({ name, args }: ToolCall, decision: Decision, scope: Scope): Rule {
  const text = JSON.stringify(args);
  if (text.length > MAX_RULE_CHARS)
    throw new AppError(
      "invalid_request",
      `The call has ${text.length} characters of arguments; at most ${MAX_RULE_CHARS} can be remembered.`,
    );
  const matcher = { tool: literal(name), arguments: args };
  const hash = createHash("sha256").update(JSON.stringify([name, args]));
  return {
    ...{ id: `answer-${hash.digest("hex").slice(0, 16)}`, scope, priority: 0, matcher, decision },
    description: firstChars(`${name} ${text}`, 200),
  };
}

/** A pattern that only the name itself matches. */
const literal = (name: string) => name.replace(/[\\*?[\]{}]/g, "\\$&");

// Rules in a JSON file: a list of rules, each in its short or its long form.
const MAX_BYTES = 1024 * 1024;

/** Throws `config_invalid` with all that is wrong, one a line: the file, the place in it, what would be right. */
export async function loadRules(path: string): Promise<Rule[]> {
  const read = await readText(path, MAX_BYTES);
  if ("fault" in read) throw invalid(`${path}: the file ${read.fault}`);
  const checked = check(z.array(RuleSpec), parsed(read.text, path));
  if ("value" in checked) return checked.value;
  throw invalid(checked.faults.map((fault) => `${path}: ${sentence(fault)}`).join("\n"));
}

/**
 * Replaces the file as a whole: whoever reads it, also after a crash, finds the old rules or the new ones.
 * Throws `config_invalid` for a rule with a condition of the program's own, which cannot be written down.
 */
export async function saveRules(path: string, rules: readonly Rule[]): Promise<void> {
  const custom = rules.find(({ matcher }) => matcher.custom !== undefined);
  if (custom)
    throw invalid(`${path}: rule \`${custom.id}\` has a \`custom\` condition; a file cannot hold one`);
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

// Where the rules lie that people have made, by their answers or over the API, and what of them is shown.
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
