// Decides every tool call by rules and a mode: it runs, it is refused, or somebody must be asked first. Tools
// that no rule would ever let run are not shown to the model. Every decision is a span of the trace.

import { z } from "zod";
import { type CallTool, defineHook, type ToolRequest } from "../../core/hook.ts";
import type { Answer } from "../../core/interrupt.ts";
import { askFor } from "../../core/interrupts.ts";
import type { Run } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { done, failed, interrupted, type ToolResult } from "../../core/tool.ts";
import type { TraceRecorder } from "../../core/trace.ts";
import { addSessionRule, STATE_KEY, sessionRules } from "./grants.ts";
import { decide, isDeniedForGood, Mode, makePolicy, type Policy, type Verdict } from "./policy.ts";
import { RuleSpec } from "./rule.ts";
import { ruleFor } from "./rule-for.ts";

export const permissions = defineHook({
  name: "permissions",
  options: z.strictObject({
    mode: Mode.default("default").describe("What happens to a call of which no rule speaks."),
    rules: z
      .array(RuleSpec)
      .default([])
      .describe(
        "What runs, what is refused and what a person is asked about; a deny of the agent's is absolute.",
      ),
  }),
  activeByDefault: () => false,
  create({ mode, rules }, { agent, recorder }) {
    let known: { readonly policy: Policy; readonly grants: unknown } | undefined;

    /** Made again only when the thread's own rules have changed. */
    function policyFor(run: Run): Policy {
      const grants = run.state.get(STATE_KEY);
      if (!known || known.grants !== grants) {
        const place = { agent: agent.name, session: run.threadId };
        const all = [...rules, ...sessionRules(run.state)];
        known = { grants, policy: makePolicy({ mode, rules: all, ...place }) };
      }
      return known.policy;
    }

    /** Does what a person has said about a call. */
    async function* follow(
      answer: Answer,
      request: ToolRequest,
      next: CallTool,
      run: Run,
    ): Stream<ToolResult> {
      const { call } = request;
      switch (answer.decision) {
        case "approve":
          if (answer.remember) yield* addSessionRule(run, ruleFor(call, "allow", "session"));
          return yield* next(request);
        case "edit": {
          const edited = { ...request, call: { ...call, args: answer.args ?? {} } };
          const verdict = decide(edited.call, edited.tool, policyFor(run));
          if (verdict.decision === "deny") return failed(verdict.message ?? refusal(edited, verdict));
          return yield* next(edited);
        }
        case "deny":
          if (answer.remember) yield* addSessionRule(run, ruleFor(call, "deny", "session"));
          return failed(
            answer.message ??
              "The user does not allow this call. Do not try to reach the same in another way.",
          );
        case "respond":
          return done(answer.message ?? "");
      }
    }

    return {
      name: "permissions",

      modifyRequest(request, run) {
        const policy = policyFor(run);
        const isShown = ({ name }: { name: string }) => !isDeniedForGood(name, run.tools.get(name), policy);
        return { ...request, tools: request.tools.filter(isShown) };
      },

      async *wrapToolCall(request, next, run) {
        const verdict = decide(request.call, request.tool, policyFor(run));
        if (recorder) trace(recorder, request, verdict, run);
        if (verdict.decision === "deny") return failed(verdict.message ?? refusal(request, verdict));
        if (verdict.decision !== "ask" || !isRunnable(request)) return yield* next(request);
        const answer = yield* ask(request, verdict, run);
        return answer ? yield* follow(answer, request, next, run) : interrupted();
      },
    };
  },
});

/** Nobody is asked about a call that fails before it does anything. */
function isRunnable({ call, tool }: ToolRequest): boolean {
  return tool !== undefined && call.malformed === undefined && "args" in tool.parse(call.args);
}

function ask({ call }: ToolRequest, { message, why }: Verdict, run: Run): Stream<Answer | undefined> {
  const prompt = message ?? `May \`${call.name}\` run? ${why}`;
  return askFor({ call, kind: "approval", prompt, options: ["approve", "deny", "edit", "respond"] }, run);
}

function refusal({ call }: ToolRequest, { why }: Verdict): string {
  return `Permission denied for \`${call.name}\`: ${why}. Do not try to reach the same in another way.`;
}

function trace(recorder: TraceRecorder, { call }: ToolRequest, verdict: Verdict, run: Run): void {
  const { decision, rule, why } = verdict;
  recorder
    .startSpan("permission.decision", {
      ...{ run_id: run.id, thread_id: run.threadId },
      ...{ tool_name: call.name, tool_call_id: call.id },
      ...{ decision, why, ...(rule ? { rule: rule.id } : {}) },
    })
    .end();
}
