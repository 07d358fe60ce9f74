// The services of other rooms that executing a run needs.

import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { BackendPool } from "../../agent/core/backend.ts";
import type { AppError } from "../../agent/core/errors.ts";
import type { Subagents } from "../../agent/core/hook.ts";
import type { Completion, ModelRequest } from "../../agent/core/model.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import type { Failure } from "../../agent/core/run.ts";
import type { Claim, Stores } from "../../agent/core/stores.ts";
import type { TaskBoard } from "../../agent/core/task-board.ts";
import type { Tool, TraceRecorder } from "../../agent/core/tool.ts";
import type { TraceContext, TracedRun } from "../../agent/core/trace-context.ts";
import type { Logger } from "../../lib/logger.ts";
import type { StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import type { Quotas } from "../quotas/index.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Restoration } from "./restored-calls.ts";
import type { SentRequests } from "./sent-requests.ts";

/** The agents that runs execute. */
export type Agents = Pick<AgentRegistry, "find" | "checkModel" | "isReserved" | "build">;

/** A run that ended with open questions. */
export interface InterruptedRun {
  readonly owner: Owner;
  readonly run: RunRecord;
  readonly interrupts: readonly Interrupt[];
}

/** The API keys with which runs are started. */
export interface StartingKeys {
  /** Rejects when the store of keys fails. */
  isRevoked(apiKey: string): Promise<boolean>;
  /** Calls `onRevoked` within five seconds of the revocation. Returns a function that stops watching; the caller calls it. */
  watch(apiKey: string, onRevoked: () => void): () => void;
}

export interface RunServices {
  readonly stores: Stores;
  readonly agents: Agents;
  readonly backends: BackendPool;
  readonly logger: Logger;
  readonly recorder?: TraceRecorder | undefined;
  /** Replaces the built-in board where tasks are delegated. */
  readonly tasks?: TaskBoard | undefined;
  readonly subagents?: Subagents;
  /** Absent: no limits and no usage counters. */
  readonly quotas?: Quotas | undefined;
  /** The most bytes that the messages of a thread may have, as JSON. Default: 32 MiB. */
  readonly threadBytes?: number | undefined;
  /** Present: a run is cancelled when the key that started it is revoked. */
  readonly startingKeys?: StartingKeys | undefined;
  /** Present: what models are sent is kept. */
  readonly sentRequests?: SentRequests | undefined;
  /** Present: a delivery of a deferred result may be repeated. */
  readonly deliveries?: Deliveries | undefined;
  /** Present: what the stores hold was restored from a backup. */
  readonly restoration?: Restoration | undefined;
  /** Called for each run that fails in this process, before its end is written. Must return at once and not throw. */
  onFailed?(run: RunRecord, error: AppError): void;
  /** Called for each run that will end with open questions, before its end is stored. Must not throw. */
  beforeInterrupted?(interrupted: InterruptedRun): Promise<void>;
  /** Called for each run that ends with open questions. Must return at once and not throw. */
  onInterrupted?(interrupted: InterruptedRun): void;
  /** Called for each deferred result that is taken; `late`: its thread has continued without. Must return at once and not throw. */
  onDelivered?(outcome: "delivered" | "late"): void;
  /** Where runs belong in traces. Absent: what came with a run's request is passed on. */
  readonly traces?: RunTraces | undefined;
  /** What follows each run of this process, for metrics and traces. Nothing in it may wait or throw. */
  readonly listeners?: readonly ((claim: Claim) => RunListener)[] | undefined;
  /** The tools that the user's tenant registered for an agent. */
  tenantTools?(owner: Owner, agent: string): Promise<readonly Tool[]>;
}

export interface RunTraces {
  /** Of the run itself. */
  contextOf(run: TracedRun): TraceContext;
}

/** How a running run is controlled from outside. */
export interface Control {
  /** Ends the run. */
  readonly signal: AbortSignal;
  /** Aborted when another process continues the run: nothing more is written for it here. */
  readonly handedOver: AbortSignal;
  /** Whether the run shall end after its current step. */
  interruptRequested(): boolean;
}

/** Sees the events of the run itself, not those of its subagents and no deltas, in the run's order. */
export interface RunObserver {
  /** Runs before the event is written. The events it returns are written in the same step, first. May throw. */
  beforeWrite?(event: StreamEvent): Promise<void> | readonly StreamEvent[] | undefined;
  /** Runs once the event is in the log, or on its way there with the next one. */
  afterWrite?(event: StreamEvent): Promise<void> | undefined;
  /** Runs for a progress event, on its way to the log. Must return at once and not throw. */
  onProgress?(event: StreamEvent): void;
}

export interface RunListener extends Pick<RunObserver, "afterWrite" | "onProgress"> {
  onFailure?(failure: Failure): void;
  /** What a model of the run is about to be sent, and what it answered. */
  onModelRequest?(request: ModelRequest): void;
  onModelReply?(reply: Completion): void;
  /** Runs when events that are waited for are in the log; after how many ms. */
  onStored?(ms: number): void;
  /** Another process has the run: nothing more is written for it here. */
  onLost?(): void;
}
