// Hooks extend an agent. They are composed as an onion, with the first one outermost. This file also defines the services
// that the engine provides to hooks.

import { z } from "zod";
import type { Fault } from "../../lib/check.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer } from "../../protocol/interrupt.ts";
import type { AgentDefinition, ModelSpec } from "./agent.ts";
import type { Backend } from "./backend.ts";
import type { AppError } from "./errors.ts";
import type { ItemStore } from "./items.ts";
import type { AssistantMessage, Message, ToolCall, Usage } from "./message.ts";
import type { Completion, Model, ModelRequest } from "./model.ts";
import type { Lineage, RunRecord } from "./records.ts";
import type { Outcome } from "./run.ts";
import type { DeltaSink, MaybeStream, Stream } from "./stream.ts";
import type { TaskBoard } from "./task-board.ts";
import type { Run, Tool, ToolResult, TraceRecorder } from "./tool.ts";

/** One execution of a tool. `tool` is undefined when the model invented the name. */
export interface ToolRequest {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  readonly signal: AbortSignal;
}

/** Yields every delta, unless `deltas` takes it. */
export type CallModel = (request: ModelRequest, deltas?: DeltaSink) => Stream<Completion>;
export type CallTool = (request: ToolRequest) => Stream<ToolResult>;

/**
 * Every member is optional. Each run gets a new hook, so its closure can keep the run's state.
 *
 * | phase         | when                                  | order         | an error…                           |
 * |---------------|---------------------------------------|---------------|-------------------------------------|
 * | tools         | once, before anything is read         | in order      | fails the run                       |
 * | hides         | before each model call, for each tool | first yes     | fails the run                       |
 * | beforeAgent   | once, before the loop                 | in order      | fails the run                       |
 * | modifyRequest | before each model call                | in order      | fails the run                       |
 * | wrapModelCall | around each model call                | onion         | fails the run                       |
 * | wrapToolCall  | around each tool call                 | onion         | is the call's result (`abortRun`: fails the run) |
 * | onStop        | the model wants to stop               | first message | fails the run                       |
 * | afterAgent    | at the end, unless another process continues the run | reverse order | is a `warning`        |
 */
export interface Hook {
  readonly name: string;
  /** Returns tools for the agent. Also called outside runs to list the tools, so it must not perform I/O. */
  tools?(run: Run): readonly Tool[];
  /** Returns true to hide a tool from the model, no matter which component registered it. */
  hides?(tool: Pick<Tool, "name">, run: Run): boolean;
  beforeAgent?(run: Run): MaybeStream<void>;
  /** Returns a new request. Must not modify its argument. */
  modifyRequest?(request: ModelRequest, run: Run): ModelRequest | Promise<ModelRequest>;
  /**
   * Pass `deltas` to `next` if the hook does not change the answer's deltas. They then bypass the hook at no
   * cost.
   */
  wrapModelCall?(request: ModelRequest, next: CallModel, run: Run, deltas?: DeltaSink): Stream<Completion>;
  /**
   * Before it calls `next`, the hook can allow, deny or rewrite the call. Afterwards, it can read or change
   * the result.
   */
  wrapToolCall?(request: ToolRequest, next: CallTool, run: Run): Stream<ToolResult>;
  /** Returns a message that keeps the model working, or undefined to let it stop. */
  onStop?(message: AssistantMessage, run: Run): Message | undefined | Promise<Message | undefined>;
  afterAgent?(outcome: Outcome, run: Run): void | Promise<void>;
}

/** A planned model call. */
export interface PlannedCall {
  readonly model: string;
  /** The caller. If unset, this call does not affect decisions about the caller's later runs. */
  readonly caller?: { readonly agent: string; readonly threadId: string };
  /**
   * Returns estimated token counts: the whole input, the fixed part of the input (everything except messages)
   * and the maximum output, including thinking. Also returns the number of searches by the provider, if it has a
   * limit. Called only if budgets exist.
   */
  size(): {
    readonly input: number;
    readonly output: number;
    readonly fixed?: number;
    readonly searches?: PlannedSearches | undefined;
  };
  /** True if the call accepts a lower output limit while other calls have reserved the rest. */
  readonly takesLess: boolean;
}

/** The number of searches that a model call makes at most, and at least. */
export interface PlannedSearches {
  readonly most: number;
  readonly least: number;
}

/** The usage of a finished model call. */
export interface MeteredCall {
  readonly agent: string;
  readonly model: string;
  readonly usage: Usage;
}

export type Reservation =
  /**
   * `outputLimit` is the maximum number of output tokens that are reserved. It is undefined without budgets.
   * `searchLimit` is the maximum number of searches that are reserved. It is undefined if they have no limit.
   * `soft` warns that most of a budget is used.
   */
  | {
      readonly isGranted: true;
      readonly id: string;
      readonly outputLimit?: number;
      readonly searchLimit?: number;
      readonly soft?: string;
    }
  /**
   * `isSpent` is true if too little of the budget is left in this period. It is false if other calls have
   * reserved the rest of the budget.
   */
  | { readonly isGranted: false; readonly isSpent: boolean; readonly error: AppError };

/** The budgets of a run's owner. Both methods throw `unavailable` when the store cannot be reached. */
export interface ModelCallQuotas {
  reserve(owner: Owner, call: PlannedCall): Promise<Reservation>;
  /** Ends a reservation and records the usage of the call. If `call` is omitted, no usage is recorded. */
  settle(owner: Owner, id: string, call?: MeteredCall): Promise<void>;
}

/** The services that hooks can use. */
export interface HookServices {
  readonly agent: AgentDefinition;
  readonly backend?: Backend | undefined;
  readonly recorder?: TraceRecorder | undefined;
  readonly quotas?: ModelCallQuotas | undefined;
  readonly items?: ItemStore | undefined;
  /** Replaces the built-in task board for delegated tasks. */
  readonly tasks?: TaskBoard | undefined;
  readonly subagents?: Subagents | undefined;
  /** Creates a model other than the agent's own. Throws an `AppError` if no provider accepts the spec. */
  createModel(spec: ModelSpec): Model;
}

/** `disable`: turn the hook off. `switch`: turn it off and on. `configure`: also see and set its options. */
export const UserMay = z.enum(["disable", "switch", "configure"]);
export type UserMay = z.infer<typeof UserMay>;

/** The definition of a hook, which the configuration refers to by name. */
export interface HookDefinition<S extends z.ZodType = z.ZodType> {
  /** The hook's key under `hooks:` in agents.yaml. */
  readonly name: string;
  readonly options: S;
  /**
   * The names of the tools that the hook registers. No other tool may use these names, and `tools:` can
   * select from them.
   */
  readonly tools?: readonly string[];
  /** The names of tools that the hook needs and that `tools:` therefore does not exclude. */
  readonly fixedTools?: readonly string[];
  /**
   * The permission of users to override the hook for their own runs. Default: none. Omit it for hooks that
   * protect the operator, the tenant or other users, and for hooks that add tools.
   */
  readonly userMay?: UserMay;
  /** Returns the models in the hook's options, which are validated with the agents file. */
  models?(options: z.output<S>): readonly ModelSpec[];
  /** Returns warnings about valid options, for `config check`. */
  doubts?(options: z.output<S>): readonly Fault[];
  /**
   * True for a hook that applies the rules of parents to their subagents. Every run has this hook. If
   * `agent.hooks` turns it off, it must do nothing else.
   */
  readonly bindsSubagents?: true;
  /** Returns true if agents have this hook when their YAML does not mention it. */
  activeByDefault(agent: AgentDefinition): boolean;
  /**
   * Loads the hook's code. Called before each `create` and cannot be cancelled, so it must resolve at once if
   * the code is already loaded.
   */
  load?(): Promise<void>;
  /**
   * Creates the hook for one run. All runs of an agent share `options`, which are parsed once, so a hook must
   * not change them.
   */
  create(options: z.output<S>, services: HookServices): Hook;
}

/** Hides the type of the options, so all definitions fit into one list. */
export function defineHook<S extends z.ZodType>(definition: HookDefinition<S>): HookDefinition {
  return {
    ...definition,
    create: (options, services) => definition.create(options as z.output<S>, services),
    ...(definition.doubts ? { doubts: (options) => definition.doubts?.(options as z.output<S>) ?? [] } : {}),
    models: (options) => definition.models?.(options as z.output<S>) ?? [],
  };
}

// A subagent is a separate thread with its own runs. Its events also appear in its parent's stream. Every
// method of this port is safe to repeat.

export interface NewChild {
  /**
   * The delegating run chooses and stores this id beforehand, so a repeated `begin` finds the same thread.
   */
  readonly thread_id: string;
  readonly agent: string;
  readonly messages: readonly Message[];
  readonly lineage: Lineage;
}

export interface AgentSummary {
  readonly name: string;
  readonly description?: string;
  readonly prefix?: string;
}

export interface Subagents {
  /** Returns the agents that exist among these names. */
  describe(names: readonly string[]): AgentSummary[];
  /**
   * Creates the child's thread and starts its first run, which waits while too many runs are active. If the
   * thread exists, returns its most recent run. Throws `limit_exceeded` when the tree of runs has started too
   * many runs.
   */
  begin(owner: Owner, child: NewChild): Promise<RunRecord>;
  /**
   * Resumes a child that waits for answers, with a new run or with the run that was started with the same
   * `key`. Without answers, it applies decisions made in the meantime. Throws `interrupt_closed` or
   * `thread_busy`.
   */
  resume(
    owner: Owner,
    child: { readonly run: RunRecord; readonly lineage: Lineage },
    resumption: { readonly answers: readonly z.infer<typeof Answer>[]; readonly key: string },
  ): Promise<RunRecord>;
  /** Returns the thread's most recent run, or undefined when the thread does not exist. */
  newest(owner: Owner, threadId: string): Promise<RunRecord | undefined>;
  /**
   * Yields all events of a run, from first to last, including live ones. Takes over a run whose process died,
   * unless another process takes over the run. Throws `not_found`, or `events_expired` when the first events
   * are no longer stored.
   */
  events(owner: Owner, run: RunRecord, signal: AbortSignal): AsyncGenerator<StreamEvent, void, void>;
  /**
   * Marks the run as waiting for children, so they can use its slot. Call the returned function afterwards:
   * it resolves when the run can continue, or when `signal` aborts.
   */
  pause(runId: string, signal: AbortSignal): () => Promise<void>;
  /** Returns the child's messages, oldest first, and its state. */
  thread(owner: Owner, threadId: string): Promise<{ messages: Message[]; state: Record<string, unknown> }>;
  /** Ends a run. Does nothing if the run has already ended. */
  stop(owner: Owner, run: RunRecord, mode: "cancel" | "interrupt"): Promise<void>;
}
