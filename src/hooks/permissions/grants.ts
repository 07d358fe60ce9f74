// Session rules: what a person answered once and for all, kept with the thread.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { type Run, setState } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { type Rule, RuleSpec } from "./rule.ts";

/** The slot of the thread's state that holds them. */
export const STATE_KEY = "grants";
const MAX_RULES = 200;

/** Whatever scope is written there, they speak for this thread alone. What is no rule is passed over. */
export function sessionRules(state: Run["state"]): Rule[] {
  const kept = z.array(z.unknown()).safeParse(state.get(STATE_KEY)).data ?? [];
  const rules = kept.map((each) => RuleSpec.safeParse(each).data);
  return rules.flatMap((rule): Rule[] => (rule ? [{ ...rule, scope: "session" }] : []));
}

/** A rule with the same id is replaced. Throws `limit_exceeded` when there are too many. */
export async function* addSessionRule(run: Run, rule: Rule): Stream<void> {
  const others = sessionRules(run.state).filter(({ id }) => id !== rule.id);
  if (others.length >= MAX_RULES)
    throw new AppError(
      "limit_exceeded",
      `The thread has ${MAX_RULES} rules of its own already; clear them before another is remembered.`,
    );
  yield* setState(run, STATE_KEY, [...others, rule]);
}

export async function* clearSessionRules(run: Run): Stream<void> {
  yield* setState(run, STATE_KEY, []);
}
