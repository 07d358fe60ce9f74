// The checks of one stage: first the rules, which cost nothing, then the judge.

import { z } from "zod";
import { warning } from "../../core/event.ts";
import type { HookServices } from "../../core/hook.ts";
import type { Stream } from "../../core/stream.ts";
import { Judge, judged, type ModelCall, Unavailable } from "./judge.ts";
import { type Judgement, Rules, rulesOf } from "./rules.ts";
import type { Stage, Subject } from "./texts.ts";

export const Checks = z
  .strictObject({ ...Rules.shape, judge: Judge.optional().describe("A model that reads the text.") })
  .refine((checks) => Object.keys(checks).length > 0, "must hold at least one check")
  .meta({ id: "GuardrailChecks" });
type Checks = z.output<typeof Checks>;

/** Says what is wrong with the subject; nothing when it may pass. */
export type Guard = (subject: Subject, call: ModelCall) => Stream<Judgement>;

export function guardOf(stage: Stage, { judge, ...rules }: Checks, { createModel }: HookServices): Guard {
  const { deny, topics } = rules;
  const allRules = rulesOf(rules);
  const denials = rulesOf({ deny, topics });
  const model = judge?.model === undefined ? undefined : createModel(judge.model);

  return async function* ({ texts, thoughts, whole }, call) {
    for (const text of texts) {
      const fault = text.trim() && (await allRules(text));
      if (fault) return fault;
    }
    for (const thought of thoughts) {
      const fault = await denials(thought);
      if (fault) return fault;
    }
    if (!judge || !whole.trim()) return undefined;
    try {
      return await judged({ ...judge, model }, { stage, text: whole, ...call });
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      if (judge.fail === "closed") return `could not be judged: ${error.message}`;
      yield warning("guardrail_unavailable", `Let through without the judge's word: ${error.message}`);
      return undefined;
    }
  };
}
