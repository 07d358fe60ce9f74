// How a run ended, for who waits for it.

import { AppError, type ErrorInfo } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Interrupt } from "../core/interrupt.ts";
import type { AssistantMessage, Message, Usage } from "../core/message.ts";
import type { RunRecord, RunStatus } from "../core/records.ts";
import type { LogEntry, Stores } from "../core/stores.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import type { RunManager } from "../runs/manager.ts";
import { openOn } from "../runs/start.ts";

export interface RunResult {
  readonly run: RunRecord;
  /** `error` with a limit as `stop_reason`, or with `error`. */
  readonly status: Exclude<RunStatus, "pending" | "running">;
  readonly stop_reason?: string;
  /** The last thing that the assistant said in this run. */
  readonly message?: AssistantMessage;
  /** Its text; empty when there is none. */
  readonly text: string;
  /** All that the run added to the thread, what it was started with included. */
  readonly messages: readonly Message[];
  readonly usage: Usage;
  /** `cause` is what was thrown, where the run failed in this process and not long ago. */
  readonly error?: ErrorInfo & { readonly cause?: unknown };
  /** What it waits for when it is `interrupted`. */
  readonly interrupts: readonly Interrupt[];
}

/** The log holds events as they were checked when they were made. */
export const eventOf = ({ json }: LogEntry) => JSON.parse(json) as StreamEvent;

export interface ResultServices {
  readonly runs: RunManager;
  readonly stores: Stores;
  /** What runs have failed with, by their ids. */
  readonly causes: { get(runId: string): unknown };
}

/** Resolves once the run has ended. Throws `shutting_down` when `signal` aborts before, as the run may go on elsewhere. */
export async function resultOf(
  { runs, stores, causes }: ResultServices,
  { owner, run }: { owner: Owner; run: RunRecord },
  signal: AbortSignal,
): Promise<RunResult> {
  const messages: Message[] = [];
  for await (const batch of runs.events(owner, run, 0, signal)) {
    for (const entry of batch) if (entry.event === "on_message") messages.push(...messageIn(entry));
  }
  const ended = await runs.get(owner, run.thread_id, run.id);
  const { status, stop_reason, usage, error } = ended;
  if (status === "pending" || status === "running")
    throw new AppError("shutting_down", `The runtime was closed before run \`${run.id}\` had ended.`);
  const interrupts = status === "interrupted" ? await openOn(stores.threads, owner, run.thread_id) : [];
  const cause = causes.get(run.id);
  const message = messages.findLast((each) => each.role === "assistant");
  return {
    ...{ run: ended, status, text: message?.content ?? "", messages, usage, interrupts },
    ...omitUndefined({
      stop_reason,
      message,
      error: error && ({ ...error, ...omitUndefined({ cause }) } as RunResult["error"]),
    }),
  };
}

/** A subagent's message belongs to its own thread. */
function messageIn(entry: LogEntry): Message[] {
  const event = eventOf(entry);
  return event.event === "on_message" && !event.path ? [event.data.message] : [];
}
