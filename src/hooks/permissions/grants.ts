// The rules that people have made: kept with the thread, or with the agent for all of the user's threads.

import { setImmediate as turn } from "node:timers/promises";
import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { ItemStore, Shelf } from "../../core/items.ts";
import { setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import type { Run } from "../../core/tool.ts";
import { ruleKey, rulesIn, SESSION_RULES } from "./remembered.ts";
import { type Rule, RuleSpec, type Scope } from "./rule.ts";

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
