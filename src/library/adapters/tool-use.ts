// Pre- and post-tool-use hooks: functions that decide about a call before it runs, or see its result after it.

import { endsTheRun, messageOf } from "../../core/errors.ts";
import { warning } from "../../core/event.ts";
import type { ToolRequest } from "../../core/hook.ts";
import { askFor } from "../../core/interrupts.ts";
import type { ToolCall } from "../../core/message.ts";
import { reportFailure } from "../../core/run.ts";
import { done, failed, interrupted, type Run, type Tool, type ToolResult } from "../../core/tool.ts";
import type { HookFactory } from "../own-hooks.ts";

export interface ToolUse {
  readonly call: ToolCall;
  /** Absent when the model made the name up. */
  readonly tool: Tool | undefined;
  readonly run: Run;
  readonly signal: AbortSignal;
}

export type ToolDecision =
  /** Run it, with other arguments if there are any. Hooks and permissions further in still have their say. */
  | { readonly decision: "allow"; readonly args?: Record<string, unknown> }
  /** The model reads the message. */
  | { readonly decision: "deny"; readonly message: string }
  /** Let a person decide; the run waits for that as long as it takes. */
  | { readonly decision: "ask"; readonly message?: string };

/** Nothing leaves the decision to the next one, and in the end to the agent's permissions. */
export type PreToolUse = (use: ToolUse) => ToolDecision | undefined | Promise<ToolDecision | undefined>;

/** In order; the first that decides counts. What one throws the model reads as the call's error. */
export function fromPreToolUse(...hooks: readonly PreToolUse[]): HookFactory {
  const decide = async ({ call, tool, signal }: ToolRequest, run: Run): Promise<ToolDecision> => {
    for (const hook of hooks) {
      const decision = await hook({ call, tool, signal, run });
      if (decision) return decision;
    }
    return { decision: "allow" };
  };
  return () => ({
    name: "pre-tool-use",
    async *wrapToolCall(request, next, run) {
      const decision = await decide(request, run);
      if (decision.decision === "deny") return failed(decision.message);
      if (decision.decision === "allow") return yield* next(withArgs(request, decision.args));
      const { call } = request;
      const prompt = decision.message ?? `May \`${call.name}\` run?`;
      const answer = yield* askFor({ call, kind: "approval", prompt, options: OPTIONS }, run);
      if (!answer) return interrupted();
      if (answer.decision === "deny") return failed(answer.message ?? "The user does not allow this call.");
      if (answer.decision === "respond") return done(answer.message ?? "");
      // If a person has changed the call, `request` is the changed call, which was judged above.
      return yield* next(request);
    },
  });
}

const OPTIONS = ["approve", "deny", "edit", "respond"];

const withArgs = (request: ToolRequest, args: Record<string, unknown> | undefined): ToolRequest =>
  args ? { ...request, call: { ...request.call, args } } : request;

/** Another result, or nothing to leave it as it is. */
export type PostToolUse = (
  use: ToolUse & { readonly result: Extract<ToolResult, { status: "done" }> },
) => ToolResult | undefined | Promise<ToolResult | undefined>;

/** In order, each with the result of the one before. What one throws is a `warning`, unless it ends the run. */
export function fromPostToolUse(...hooks: readonly PostToolUse[]): HookFactory {
  return () => ({
    name: "post-tool-use",
    async *wrapToolCall(request, next, run) {
      const { call, tool, signal } = request;
      let result = yield* next(request);
      for (const hook of hooks) {
        if (result.status === "interrupted") return result;
        try {
          result = (await hook({ call, tool, signal, run, result })) ?? result;
        } catch (error) {
          if (endsTheRun(error)) throw error;
          reportFailure(run, {
            ...{ what: "hook", error, hook: "post-tool-use", tool: call.name, call_id: call.id },
          });
          yield warning("hook_failed", `A hook after \`${call.name}\` failed: ${messageOf(error)}`);
        }
      }
      return result;
    },
  });
}
