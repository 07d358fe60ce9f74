// Flow rules that a subagent inherits from the agents that it works for if it has no permissions itself.

import { FLOW_RULES } from "../../../core/flow-rules.ts";
import type { CallTool, HookServices, ToolRequest } from "../../../core/hook.ts";
import type { ModelRequest } from "../../../core/model.ts";
import { approvalOf } from "../../../core/open-interrupts.ts";
import { SEARCH_IS_DENIED } from "../../../core/own-search.ts";
import type { Stream } from "../../../core/stream.ts";
import { denied, interrupted, type Run, type ToolResult } from "../../../core/tool.ts";
import { answered } from "../answered.ts";
import { ask, isRunnable, refusal } from "../question.ts";
import { held } from "./held.ts";
import { type FlowHold, holdFor, holdsSearch, withoutHeldTools } from "./hold.ts";

export interface InheritedFlow {
  begin(run: Run): Stream<void>;
  request(request: ModelRequest, run: Run): Promise<ModelRequest>;
  wrap(request: ToolRequest, next: CallTool, run: Run): Stream<ToolResult>;
}

/** Applies the inherited rules. Does nothing in a run where the `permissions` hook already applies these rules. */
export function inheritedFlow(services: HookServices): InheritedFlow {
  let hold: FlowHold | undefined;

  return {
    async *begin(run) {
      const rules = run.lineage?.flow ?? [];
      if (run.values.has(FLOW_RULES) || rules.length === 0) return;
      run.values.set(FLOW_RULES, rules);
      hold = holdFor(rules, services);
      yield* hold.begin(run);
    },

    async request(request, run) {
      if (!hold) return request;
      run.values.set(SEARCH_IS_DENIED, await holdsSearch(hold, run));
      return withoutHeldTools(request, hold, run);
    },

    wrap: (request, next, run) =>
      hold ? decide({ hold, workdir: services.backend?.workdir }, { request, next }, run) : next(request),
  };
}

const ALLOWED = { decision: "allow", why: "no rule matches it" } as const;

async function* decide(
  { hold, workdir }: { readonly hold: FlowHold; readonly workdir: string | undefined },
  { request, next }: { readonly request: ToolRequest; readonly next: CallTool },
  run: Run,
): Stream<ToolResult> {
  const verdict = held(ALLOWED, await hold.judge(request, run), "default");
  if (verdict.decision === "deny") return denied(refusal(request, verdict));
  const go: CallTool = (each) => hold.pass(each, next, run);
  const isAnswered = approvalOf(request.call, run) !== undefined;
  if (!isAnswered && !(verdict.decision === "ask" && isRunnable(request))) return yield* go(request);
  const answer = yield* ask(request, verdict, run, workdir);
  return answer ? yield* answered(answer, request, go) : interrupted();
}
