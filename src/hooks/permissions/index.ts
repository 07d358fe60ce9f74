// Decides every tool call by rules and a mode: it runs, it is refused, or somebody must be asked first. Tools
// that no rule would ever let run are not shown to the model. Every decision is a span of the trace.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import { type CallTool, defineHook, type ToolRequest } from "../../core/hook.ts";
import type { Answer } from "../../core/interrupt.ts";
import { askFor } from "../../core/interrupts.ts";
import type { ToolCall } from "../../core/message.ts";
import { SESSION_RULES } from "../../core/permission-rules.ts";
import type { Run } from "../../core/run.ts";
import type { Stream } from "../../core/stream.ts";
import { done, failed, interrupted, type ToolResult } from "../../core/tool.ts";
import type { TraceRecorder } from "../../core/trace.ts";
import { addSessionRule, sessionRules, type UserRules, userRules } from "./grants.ts";
import { decide, isDeniedForGood, Mode, makePolicy, type Policy, type Verdict } from "./policy.ts";
import { type Rule, RuleSpec } from "./rule.ts";
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
    files: z
      .array(z.string().min(1))
      .max(32)
      .default([])
      .describe("JSON files beside this one, each a list of such rules; they come before `rules`."),
  }),
  activeByDefault: () => false,
  create({ mode, rules, files }, { agent, recorder, items }) {
    // Whoever reads the agents' file has put their rules among the others.
    if (files.length > 0)
      throw new AppError("config_invalid", "permissions: `files` belong into agents.yaml; give `rules`.");
    let known: { readonly policy: Policy; readonly grants: unknown } | undefined;
    let user: UserRules | undefined;
    let remembered: readonly Rule[] = [];

    /** Made again only when the rules that people have made have changed. */
    function policyFor(run: Run): Policy {
      const grants = run.state.get(SESSION_RULES);
      if (!known || known.grants !== grants) {
        const place = { agent: agent.name, session: run.threadId };
        const all = [...rules, ...sessionRules(run.state), ...remembered];
        known = { grants, policy: makePolicy({ mode, rules: all, ...place }) };
      }
      return known.policy;
    }

    /** Where nothing is kept for users, the thread remembers it. */
    async function* remember({ remember: where, decision }: Answer, call: ToolCall, run: Run): Stream<void> {
      const effect = decision === "approve" ? "allow" : "deny";
      if (where === "agent" && user) {
        const rule = ruleFor(call, effect, "user");
        await user.add(rule);
        remembered = [...remembered.filter(({ id }) => id !== rule.id), rule];
        known = undefined;
      } else if (where) yield* addSessionRule(run, ruleFor(call, effect, "session"));
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
          yield* remember(answer, call, run);
          return yield* next(request);
        case "edit": {
          const edited = { ...request, call: { ...call, args: answer.args ?? {} } };
          const verdict = decide(edited.call, edited.tool, policyFor(run));
          if (verdict.decision === "deny") return failed(verdict.message ?? refusal(edited, verdict));
          return yield* next(edited);
        }
        case "deny":
          yield* remember(answer, call, run);
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

      async beforeAgent(run) {
        user = items && userRules(items, run, agent.name);
        remembered = (await user?.read()) ?? [];
      },

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
