// Decides by rules and a mode whether each tool call runs, is denied or needs approval. Tools that can never run are hidden
// from the model. The trace records every decision as a span.

import { z } from "zod";
import type { Fault } from "../../../lib/check.ts";
import { sharedRegex } from "../../../lib/regex.ts";
import { ownTick, sharedTick } from "../../../lib/ticks.ts";
import { warning } from "../../../protocol/event.ts";
import type { Answer } from "../../../protocol/interrupt.ts";
import { COMMAND_ENVIRONMENT } from "../../core/command-environment.ts";
import { AppError } from "../../core/errors.ts";
import { FlowRule, WEB_SEARCH } from "../../core/flow.ts";
import { FLOW_RULES } from "../../core/flow-rules.ts";
import { type CallTool, defineHook, type HookDefinition, type ToolRequest } from "../../core/hook.ts";
import { approvalOf } from "../../core/open-interrupts.ts";
import { CALLS_ARE_DECIDED } from "../../core/own-schedules.ts";
import { SEARCH_IS_DENIED } from "../../core/own-search.ts";
import type { Stream } from "../../core/stream.ts";
import { denied, interrupted, type Run, type TraceRecorder } from "../../core/tool.ts";
import { answered } from "./answered.ts";
import { type HeldVerdict, held } from "./flow/held.ts";
import { holdFor, holdsSearch, withoutHeldTools } from "./flow/hold.ts";
import { instructionsOf } from "./instructions.ts";
import { compileRule } from "./match.ts";
import {
  decideOn,
  isAllowedForAll,
  isDeniedForGood,
  Mode,
  makePolicy,
  type Policy,
  type Verdict,
} from "./policy.ts";
import { ask, isRunnable, refusal } from "./question.ts";
import { type Rule, RuleSpec } from "./rule.ts";
import { rememberOptions } from "./rule-options.ts";
import { guardedEnvironment } from "./shell/guarded-environment.ts";
import {
  addSessionRule,
  type KeptRules,
  keptRules,
  ruleFor,
  SESSION_RULES,
  sessionRules,
  sessionRulesShelf,
  userRulesShelf,
} from "./stored-rules.ts";
import { subjectOf } from "./subject.ts";

export const permissions = permissionsWith([]);

/**
 * Returns the hook with a program's own rules. These come before the rules in its options and turn the hook
 * on.
 */
export function permissionsWith(own: readonly Rule[]): HookDefinition {
  return defineHook({
    name: "permissions",
    options: z.strictObject({
      mode: Mode.default("default").describe("Decision on a call that matches no rule."),
      rules: z
        .array(RuleSpec)
        .default([])
        .describe("Rules that allow a call, deny it or ask a person about it."),
      files: z
        .array(z.string().min(1))
        .max(32)
        .default([])
        .describe(
          "JSON files with lists of rules, relative to agents.yaml. Their rules come before `rules`.",
        ),
      flow: z
        .array(FlowRule)
        .max(32)
        .default([])
        .describe("Rules about what a thread can do once it has read text that others wrote."),
    }),
    doubts: ({ rules }) => rules.flatMap(optionDoubts),
    activeByDefault: () => own.length > 0,
    create({ mode, rules, files, flow }, services) {
      const { agent, recorder, items, backend } = services;
      // The loader of agents.yaml replaces `files` with the rules that the files contain.
      if (files.length > 0)
        throw new AppError("config_invalid", "permissions: `files` belong in agents.yaml; pass `rules`.");
      const configured = [...own, ...rules];
      const instructs = backend && instructionsOf(agent, backend.workdir);
      let known: (Policies & { readonly grants: unknown }) | undefined;
      let user: KeptRules | undefined;
      let session: KeptRules | undefined;
      let remembered: readonly Rule[] = [];
      let hold = holdFor(flow, services);

      /** Compiles again only if the remembered rules have changed. */
      function policiesFor(run: Run): Policies {
        const grants = run.state.get(SESSION_RULES);
        if (!known || known.grants !== grants) {
          const place = { agent: agent.name, session: run.threadId, ...(instructs ? { instructs } : {}) };
          const all = [...configured, ...sessionRules(run.state), ...remembered];
          const base = makePolicy({ mode, rules: configured, ...place });
          known = { grants, base, policy: makePolicy({ mode, rules: all, ...place }) };
        }
        return known;
      }

      /**
       * Decides a call. A user's rule never overrides a denial by the agent. It must not even ask, because
       * then the user could approve the call.
       */
      function judge({ call, tool }: ToolRequest, { policy, base }: Policies): Verdict {
        const subject = subjectOf(call, tool, backend?.workdir);
        const verdict = decideOn(subject, policy);
        if (verdict.decision === "deny" || !verdict.rule || configured.includes(verdict.rule)) return verdict;
        const without = decideOn(subject, base);
        return without.decision === "deny" ? without : verdict;
      }

      /** No person can decide about searches that the model's provider executes. */
      function hidesSearch(name: string, run: Run): boolean {
        const { policy, base } = policiesFor(run);
        return [policy, base].some((each) => !isAllowedForAll(name, run.tools.get(name), each));
      }

      /** Returns the policy's verdict, or the stricter verdict of a flow rule. */
      async function decide(request: ToolRequest, policies: Policies, run: Run): Promise<HeldVerdict> {
        const verdict = judge(request, policies);
        return held(verdict, await hold.judge(request, run), mode);
      }

      /** If an answer cannot be remembered, it still applies to its call. */
      async function* remember(answer: Answer, request: ToolRequest, run: Run): Stream<void> {
        try {
          yield* keep(answer, request, run);
        } catch (error) {
          if (!(error instanceof AppError)) throw error;
          yield warning("not_remembered", `The answer applies only to this call. ${error.message}`);
        }
      }

      /** Stores the rule of an answer. Without an item store, the thread's state keeps the rule. */
      async function* keep(answer: Answer, { call, tool }: ToolRequest, run: Run): Stream<void> {
        const { remember: where, remember_as = "call", decision } = answer;
        const effect = decision === "approve" ? "allow" : "deny";
        if (!where) return;
        const scope = where === "agent" && user ? "user" : "session";
        const offered = rememberOptions(subjectOf(call, tool, backend?.workdir));
        const rule = ruleFor(
          call,
          effect,
          scope,
          offered.find((each) => each.remember_as === remember_as),
        );
        const kept = scope === "user" ? user : session;
        if (!kept) return yield* addSessionRule(run, rule);
        await kept.add(rule);
        remembered = [...remembered.filter((other) => !isSame(other, rule)), rule];
        known = undefined;
      }

      return {
        name: "permissions",

        async *beforeAgent(run) {
          if (items) {
            user = keptRules(items, userRulesShelf(run.owner, agent.name), "user");
            session = keptRules(items, sessionRulesShelf(run.owner, run.threadId), "session");
            remembered = [...(await session.read()), ...(await user.read())];
            known = undefined;
          }
          for (const rule of [...configured, ...remembered]) {
            compileRule(rule);
            if (rule.matcher.regex !== undefined) sharedRegex(rule.matcher.regex);
            await sharedTick(run.owner.tenant);
          }
          const binding = [...flow, ...(run.lineage?.flow ?? [])];
          run.values.set(FLOW_RULES, binding);
          run.values.set(CALLS_ARE_DECIDED, true);
          hold = holdFor(binding, services);
          yield* hold.begin(run);
          run.values.set(COMMAND_ENVIRONMENT, {
            ...run.values.get(COMMAND_ENVIRONMENT),
            ...guardedEnvironment(policiesFor(run).policy),
          });
        },

        hides({ name }, run) {
          const { policy, base } = policiesFor(run);
          const tool = run.tools.get(name);
          if (tool?.ofProvider) return hidesSearch(name, run);
          return [policy, base].some((each) => isDeniedForGood(name, tool, each));
        },

        async modifyRequest(request, run) {
          const isDenied = hidesSearch(WEB_SEARCH, run) || (await holdsSearch(hold, run));
          run.values.set(SEARCH_IS_DENIED, isDenied);
          return withoutHeldTools(request, hold, run);
        },

        wrapModelCall(request, next, run, deltas) {
          // A call outside of a run, such as for a title, has no step in which the rules are checked.
          if (!run.values.has(SEARCH_IS_DENIED)) run.values.set(SEARCH_IS_DENIED, true);
          return next(request, deltas);
        },

        async *wrapToolCall(request, next, run) {
          // The policies are read now so that a rule remembered from another call of this message applies
          // only to later messages.
          const policies = policiesFor(run);
          // Yield to other work, so decisions about many calls of one message do not block the event loop.
          await ownTick(run.owner.tenant);
          const verdict = await decide(request, policies, run);
          if (recorder) trace(recorder, request, verdict, run);
          // Rules and tools may have changed since the question, so an answer applies only if the call is not
          // denied now.
          const isAnswered = approvalOf(request.call, run) !== undefined;
          const isAsked = isAnswered || (verdict.decision === "ask" && isRunnable(request));
          const answer = isAsked ? yield* ask(request, verdict, run, backend?.workdir) : undefined;
          if (verdict.decision === "deny") return denied(verdict.message ?? refusal(request, verdict));
          const go: CallTool = (each) => hold.pass(each, next, run);
          if (!isAsked) return yield* go(request);
          if (!answer) return interrupted();
          if (verdict.isHeld && answer.remember) yield warning("not_remembered", ASKS_AGAIN);
          else yield* remember(answer, request, run);
          return yield* answered(answer, request, go);
        },
      };
    },
  });
}

/**
 * Warns about a rule that denies or asks for an option of a program, because programs accept more spellings
 * of an option than one rule can list.
 */
function optionDoubts({ decision, matcher }: Rule, index: number): Fault[] {
  if (decision === "allow") return [];
  const named = [...(matcher.command_prefix ?? []), matcher.regex ?? ""].find((text) => /\s-/.test(text));
  if (named === undefined) return [];
  const [command = ""] = named.split(/ +-/);
  const message = `names an option in \`${named}\`, but programs accept other spellings of it; name only \`${command}\`, and allow the uses that may run`;
  return [{ path: ["rules", index], message }];
}

interface Policies {
  readonly policy: Policy;
  /** The policy without users' rules. */
  readonly base: Policy;
}

const ASKS_AGAIN = "The answer applies only to this call, because a flow rule asks every time.";

const isSame = (a: Rule, b: Rule) => a.id === b.id && a.scope === b.scope;

function trace(recorder: TraceRecorder, { call }: ToolRequest, verdict: Verdict, run: Run): void {
  const { decision, rule, why } = verdict;
  recorder
    .startSpan("permission.decision", {
      run_id: run.id,
      thread_id: run.threadId,
      tool_name: call.name,
      tool_call_id: call.id,
      decision,
      why,
      ...(rule ? { rule: rule.id } : {}),
    })
    .end();
}
