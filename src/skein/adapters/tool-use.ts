// Pre- and post-tool-use hooks: functions that decide on a call before it runs, or change its result afterwards.

import {
  askFor,
  done,
  failed,
  type Hook,
  type HookFactory,
  hasCode,
  interrupted,
  type Run,
  type Tool,
  type ToolCall,
  type ToolResult,
} from "../../index.ts";

type ToolRequest = Parameters<NonNullable<Hook["wrapToolCall"]>>[0];

export interface ToolUse {
  readonly call: ToolCall;
  /** Undefined if no tool has that name. */
  readonly tool: Tool | undefined;
  readonly run: Run;
  readonly signal: AbortSignal;
}

export type ToolDecision =
  /** Runs the call, with `args` if given. Inner hooks and permissions still apply. */
  | { readonly decision: "allow"; readonly args?: Record<string, unknown> }
  /** Denies the call. The model sees the message. */
  | { readonly decision: "deny"; readonly message: string }
  /** Suspends the run until a user decides. */
  | { readonly decision: "ask"; readonly message?: string };

/** Decides on a call. `undefined` leaves the decision to the next hook, and finally to the agent's permissions. */
export type PreToolUse = (use: ToolUse) => ToolDecision | undefined | Promise<ToolDecision | undefined>;

/** Creates a hook from functions that run in order until one decides. A thrown error becomes the result of the call. */
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
      // If the user edited the call, `request` already contains the edited call.
      return yield* next(request);
    },
  });
}

const OPTIONS = ["approve", "deny", "edit", "respond"];

const withArgs = (request: ToolRequest, args: Record<string, unknown> | undefined): ToolRequest =>
  args ? { ...request, call: { ...request.call, args } } : request;

/** Returns another result, or `undefined` to keep the current one. */
export type PostToolUse = (
  use: ToolUse & { readonly result: Extract<ToolResult, { status: "done" }> },
) => ToolResult | undefined | Promise<ToolResult | undefined>;

/**
 * Creates a hook from functions that run in order, each with the previous result. A thrown error becomes a `warning`,
 * except `abortRun`, which ends the run.
 */
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
          if (hasCode(error, "run_aborted") || hasCode(error, "lease_lost")) throw error;
          const message = `A hook after \`${call.name}\` failed: ${error instanceof Error ? error.message : error}`;
          yield { event: "warning", data: { code: "hook_failed", message } };
        }
      }
      return result;
    },
  });
}
