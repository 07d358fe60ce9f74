// The services from other rooms that runs need for their execution.

import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { BackendPool } from "../../agent/core/backend.ts";
import type { AppError } from "../../agent/core/errors.ts";
import type { Subagents } from "../../agent/core/hook.ts";
import type { Completion, ModelRequest } from "../../agent/core/model.ts";
import type { RunRecord, RunRequest } from "../../agent/core/records.ts";
import type { Failure } from "../../agent/core/run.ts";
import type { Claim, Stores } from "../../agent/core/stores.ts";
import type { TaskBoard } from "../../agent/core/task-board.ts";
import type { Tool, TraceRecorder } from "../../agent/core/tool.ts";
import type { TraceContext, TracedRun } from "../../agent/core/trace-context.ts";
import type { Logger } from "../../lib/logger.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import type { Quotas } from "../quotas/index.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Restoration } from "./restored-calls.ts";
import type { SentRequests } from "./sent-requests.ts";

/** The agents that runs execute. */
export type Agents = Pick<AgentRegistry, "find" | "checkModel" | "isReserved" | "build">;

/** A run whose end is about to be stored. */
export interface EndingRun {
  readonly owner: Owner;
  readonly run: RunRecord;
  /** The run's last event. */
  readonly end: Extract<StreamEvent, { event: "done" | "error" }>;
  /** The questions that the run leaves open. */
  readonly interrupts: readonly Interrupt[];
  /** True if the run works on behalf of another run. */
  readonly isChild: boolean;
}

/** The API keys that start runs. */
export interface StartingKeys {
  /** Rejects if the key store fails. */
  isRevoked(apiKey: string): Promise<boolean>;
  /**
   * Calls `onRevoked` within five seconds of the revocation. The caller must call the returned function to stop
   * watching.
   */
  watch(apiKey: string, onRevoked: () => void): () => void;
}

/** The answers that people gave, and who sent them. */
export interface AnsweredRun extends Pick<RunRequest, "api_key" | "origin"> {
  readonly answers: readonly Answer[];
}

export interface RunServices {
  readonly stores: Stores;
  readonly agents: Agents;
  readonly backends: BackendPool;
  readonly logger: Logger;
  readonly recorder?: TraceRecorder | undefined;
  /** Replaces the built-in task board for delegated tasks. */
  readonly tasks?: TaskBoard | undefined;
  readonly subagents?: Subagents;
  /** If absent, there are no limits and no usage counters. */
  readonly quotas?: Quotas | undefined;
  /** The maximum number of bytes in a thread's messages, as JSON. Defaults to 32 MiB. */
  readonly threadBytes?: number | undefined;
  /** If present, a run is cancelled when the key that started it is revoked. */
  readonly startingKeys?: StartingKeys | undefined;
  /** If present, model requests are stored. */
  readonly sentRequests?: SentRequests | undefined;
  /** If present, a deferred result can be delivered more than once. */
  readonly deliveries?: Deliveries | undefined;
  /** If present, the stores' data was restored from a backup. */
  readonly restoration?: Restoration | undefined;
  /** Called for each run that fails in this process, before its end is written. Must return at once and not throw. */
  onFailed?(run: RunRecord, error: AppError): void;
  /**
   * Called for each run before its end is stored, or immediately afterwards if the store itself ends the run. Resolves
   * with a function that is called once the end is stored. Must not throw. The returned function must not throw either,
   * and must return at once.
   */
  beforeEnd?(ending: EndingRun): Promise<() => void>;
  /** Called for each run that started because a person answered. Must return at once and not throw. */
  onAnswered?(owner: Owner, answered: AnsweredRun): void;
  /**
   * Called for each accepted deferred result. `late` means that its thread has continued without it. Must return at
   * once and not throw.
   */
  onDelivered?(outcome: "delivered" | "late"): void;
  /** Assigns runs to traces. If absent, the trace context of the run's request is passed on. */
  readonly traces?: RunTraces | undefined;
  /** Observers of each run of this process, for metrics and traces. They must not wait or throw. */
  readonly listeners?: readonly ((claim: Claim) => RunListener)[] | undefined;
  /** Returns the tools that the user's tenant registered for an agent. */
  tenantTools?(owner: Owner, agent: string): Promise<readonly Tool[]>;
}

export interface RunTraces {
  /** Returns the trace context of the run itself. */
  contextOf(run: TracedRun): TraceContext;
}

/** Controls a run in progress from outside. */
export interface Control {
  /** Aborts when the run must end. */
  readonly signal: AbortSignal;
  /** Aborts when another process continues the run. This process then stops writing to it. */
  readonly handedOver: AbortSignal;
  /** Returns true if the run must end after its current step. */
  interruptRequested(): boolean;
}

/** Observes the run's own events in order, without deltas or events of its subagents. */
export interface RunObserver {
  /** Called before the event is written. The returned events are written before it, in the same step. Can throw. */
  beforeWrite?(event: StreamEvent): Promise<void> | readonly StreamEvent[] | undefined;
  /** Called when the event is in the log, or is about to be written together with the next one. */
  afterWrite?(event: StreamEvent): Promise<void> | undefined;
  /** Called for a progress event before it is in the log. Must return at once and not throw. */
  onProgress?(event: StreamEvent): void;
}

export interface RunListener extends Pick<RunObserver, "afterWrite" | "onProgress"> {
  onFailure?(failure: Failure): void;
  /** Called with each request before it is sent to a model, and then with the model's answer. */
  onModelRequest?(request: ModelRequest): void;
  onModelReply?(reply: Completion): void;
  /** Called when events that the run waits for are in the log, with the time that this took in milliseconds. */
  onStored?(ms: number): void;
  /** Called when another process takes over the run. This process then stops writing to it. */
  onLost?(): void;
}
