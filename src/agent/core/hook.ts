// Hooks: everything added around an agent. One list, composed as an onion, the first outermost. And the services that
// the engine gives them.

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

/** One execution of a tool. `tool` is absent when the model made the name up. */
export interface ToolRequest {
  readonly call: ToolCall;
  readonly tool: Tool | undefined;
  readonly signal: AbortSignal;
}

/** Without `deltas`, every delta is yielded. */
export type CallModel = (request: ModelRequest, deltas?: DeltaSink) => Stream<Completion>;
export type CallTool = (request: ToolRequest) => Stream<ToolResult>;

/**
 * Every member is optional. Each run gets a new hook, so its closure can hold the run's state.
 *
 * | phase         | when                                  | order         | an error…                           |
 * |---------------|---------------------------------------|---------------|-------------------------------------|
 * | tools         | once, before anything is read         | in order      | fails the run                       |
 * | hides         | before each model call, of each tool  | first yes     | fails the run                       |
 * | beforeAgent   | once, before the loop                 | in order      | fails the run                       |
 * | modifyRequest | before each model call                | in order      | fails the run                       |
 * | wrapModelCall | around each model call                | onion         | fails the run                       |
 * | wrapToolCall  | around each tool call                 | onion         | is the call's result (`abortRun`: fails the run) |
 * | onStop        | the model wants to stop               | first answer  | fails the run                       |
 * | afterAgent    | at the end, unless another process continues the run | reverse order | is a `warning`        |
 */
export interface Hook {
  readonly name: string;
  /** Tools for the agent. Also called outside of runs, to list them, so it must not do I/O. */
  tools?(run: Run): readonly Tool[];
  /** Whether to hide a tool from the model, wherever the tool comes from. */
  hides?(tool: Pick<Tool, "name">, run: Run): boolean;
  beforeAgent?(run: Run): MaybeStream<void>;
  /** Returns a new request; never edits the one it was given. */
  modifyRequest?(request: ModelRequest, run: Run): ModelRequest | Promise<ModelRequest>;
  /** Gives `deltas` to `next` where it leaves the deltas of the answer alone: they then cost nothing here. */
  wrapModelCall?(request: ModelRequest, next: CallModel, run: Run, deltas?: DeltaSink): Stream<Completion>;
  /** Before `next`: allow, deny or rewrite. After it: read or change the result. */
  wrapToolCall?(request: ToolRequest, next: CallTool, run: Run): Stream<ToolResult>;
  /** A message that keeps the model working, or nothing to let it stop. */
  onStop?(message: AssistantMessage, run: Run): Message | undefined | Promise<Message | undefined>;
  afterAgent?(outcome: Outcome, run: Run): void | Promise<void>;
}

/** A model call before it is made. */
export interface PlannedCall {
  readonly model: string;
  /** Who makes it. Absent: a later run of theirs is not judged by it. */
  readonly caller?: { readonly agent: string; readonly threadId: string };
  /**
   * Its input, the part of it that is not messages, and the most tokens of its answer, thinking included. Called only where
   * there are budgets.
   */
  size(): { readonly input: number; readonly output: number; readonly fixed?: number };
  /** Whether to take less than the answer's most while other calls have reserved the rest. */
  readonly takesLess: boolean;
}

/** What a model call has used. */
export interface MeteredCall {
  readonly agent: string;
  readonly model: string;
  readonly usage: Usage;
}

export type Reservation =
  /**
   * `outputLimit`: the most tokens of the answer that are reserved; undefined without budgets. `soft` warns that most of a
   * budget is used up.
   */
  | {
      readonly isGranted: true;
      readonly id: string;
      readonly outputLimit?: number;
      readonly soft?: string;
    }
  /** `isSpent`: too little is left until the period ends. Otherwise other calls have reserved the rest. */
  | { readonly isGranted: false; readonly isSpent: boolean; readonly error: AppError };

/** The budgets of a run's owner. Both methods throw `unavailable` when the store cannot be reached. */
export interface ModelCallQuotas {
  reserve(owner: Owner, call: PlannedCall): Promise<Reservation>;
  /** Ends a reservation and counts what the call used; without `call`, it used nothing. */
  settle(owner: Owner, id: string, call?: MeteredCall): Promise<void>;
}

/** Services for building hooks. */
export interface HookServices {
  readonly agent: AgentDefinition;
  readonly backend?: Backend | undefined;
  readonly recorder?: TraceRecorder | undefined;
  readonly quotas?: ModelCallQuotas | undefined;
  readonly items?: ItemStore | undefined;
  /** Replaces the built-in board where tasks are delegated. */
  readonly tasks?: TaskBoard | undefined;
  readonly subagents?: Subagents | undefined;
  /** A model other than the agent's own. Throws an `AppError` for a spec that no provider takes. */
  createModel(spec: ModelSpec): Model;
}

/** `disable`: switch it off. `switch`: off and on. `configure`: also see and set its options. */
export const UserMay = z.enum(["disable", "switch", "configure"]);
export type UserMay = z.infer<typeof UserMay>;

/** How a hook is known to the configuration. */
export interface HookDefinition<S extends z.ZodType = z.ZodType> {
  /** Its key under `hooks:` in agents.yaml. */
  readonly name: string;
  readonly options: S;
  /** The names of the tools that it registers: no other tool may have one of them, and `tools:` chooses among them. */
  readonly tools?: readonly string[];
  /** The same for tools that the hook needs: `tools:` does not leave them out. */
  readonly fixedTools?: readonly string[];
  /**
   * What users may override for their own runs. Absent: nothing. Omit it for hooks that protect the operator, the tenant
   * or other users, or that add tools.
   */
  readonly userMay?: UserMay;
  /** The models that its options name, checked with the agents file. */
  models?(options: z.output<S>): readonly ModelSpec[];
  /** Warnings about valid options, for `config check`. */
  doubts?(options: z.output<S>): readonly Fault[];
  /** Whether an agent has it when its YAML says nothing. */
  activeByDefault(agent: AgentDefinition): boolean;
  /** Loads the code of the hook. It is called before each `create`, and no signal cancels it: resolve at once when the code is there. */
  load?(): Promise<void>;
  /** Makes the hook for one run. All runs of an agent share `options`, parsed once: a hook does not change them. */
  create(options: z.output<S>, services: HookServices): Hook;
}

/** Hides the type of the options, so that all definitions fit one list. */
export function defineHook<S extends z.ZodType>(definition: HookDefinition<S>): HookDefinition {
  return {
    ...definition,
    create: (options, services) => definition.create(options as z.output<S>, services),
    ...(definition.doubts ? { doubts: (options) => definition.doubts?.(options as z.output<S>) ?? [] } : {}),
    models: (options) => definition.models?.(options as z.output<S>) ?? [],
  };
}

// A subagent is a thread of its own with runs of its own; its events also appear in its parent's stream. Every method
// of the port may be repeated.

export interface NewChild {
  /** Chosen by the delegating run and stored before, so that a repeated `begin` finds the same thread. */
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
  /** The existing agents among these names. */
  describe(names: readonly string[]): AgentSummary[];
  /**
   * Creates the child's thread and starts its first run, which waits while too many work; if the thread exists, returns its
   * newest run. Throws `limit_exceeded` when the tree of runs has started too many.
   */
  begin(owner: Owner, child: NewChild): Promise<RunRecord>;
  /**
   * Resumes a child that waits for answers, with a new run or the one started with the same `key`. Without answers it
   * applies decisions made meanwhile. Throws `interrupt_closed`, `thread_busy`.
   */
  resume(
    owner: Owner,
    child: { readonly run: RunRecord; readonly lineage: Lineage },
    resumption: { readonly answers: readonly z.infer<typeof Answer>[]; readonly key: string },
  ): Promise<RunRecord>;
  /** The thread's newest run; undefined when the thread does not exist. */
  newest(owner: Owner, threadId: string): Promise<RunRecord | undefined>;
  /**
   * All events of a run from its first to its last, live ones included. Takes over a run whose process died, unless
   * another process does. Throws `events_expired` when its first events are no longer stored, `not_found`.
   */
  events(owner: Owner, run: RunRecord, signal: AbortSignal): AsyncGenerator<StreamEvent, void, void>;
  /**
   * The run waits for children from now on, so that they may work in its place. Call what it returns afterwards: it resolves
   * when the run may continue, or `signal` aborts.
   */
  pause(runId: string, signal: AbortSignal): () => Promise<void>;
  /** The child's messages, oldest first, and its state. */
  thread(owner: Owner, threadId: string): Promise<{ messages: Message[]; state: Record<string, unknown> }>;
  /** Ends a run. Does nothing if it has ended. */
  stop(owner: Owner, run: RunRecord, mode: "cancel" | "interrupt"): Promise<void>;
}
