// Executes one claimed run from its first event to its last: prepares it, runs the loop, writes every event to the log.
// It needs no viewer: viewers read the log.

import { setTimeout as sleep } from "node:timers/promises";
import { AppError, type ErrorInfo, hasCode } from "../core/errors.ts";
import { isProgress, isTerminal, type StreamEvent } from "../core/event.ts";
import { failedEnd, interruptedEnd } from "../core/grammar.ts";
import type { Owner } from "../core/ids.ts";
import { runAgent } from "../core/loop.ts";
import {
  type Message,
  type ToolCall,
  toolMessage,
  type Usage,
  unanswered,
  unknownTo,
} from "../core/message.ts";
import type { RunRecord, RunRequest } from "../core/records.ts";
import type { Claim, EventBus, EventLog, Lease, Stores, UserEvent } from "../core/stores.ts";
import { failed } from "../core/tool.ts";
import { type Hold, holdWhile } from "../quotas/holds.ts";
import { standIns, trackInterrupts } from "./deferred.ts";
import { failureLog } from "./logging.ts";
import { FIRST_ATTEMPT, type PreviousAttempt, prepareRun, previousAttempt } from "./prepare.ts";
import type { Control, RunObserver, RunServices } from "./services.ts";
import { recount, threadLimit } from "./thread-bytes.ts";

/**
 * Resolves once the run is settled. Throws when it is not, because the lease was lost or the run was handed over: another
 * process then continues it.
 */
export async function drive(claim: Claim, services: RunServices, control: Control): Promise<void> {
  const { stores, quotas } = services;
  const { run, lease } = claim;
  const { owner } = lease;
  const writer = createWriter(stores.events, lease);
  publishStart(stores.bus, owner, run);
  const hold = quotas && holdWhile(quotas, { owner, thing: "runs", id: run.id });
  const failures = failureLog(services.logger, claim);
  const mayWrite = untilHandedOver(control.handedOver);
  let last: StreamEvent | undefined;
  try {
    const previous = run.attempt > 1 ? await previousAttempt(stores.events, lease) : FIRST_ATTEMPT;
    const [prepared, bytes] = await Promise.all([
      prepareRun(claim, services, control, previous),
      stores.threads.bytes(owner, lease.thread_id),
    ]);
    const { agent, input } = prepared;
    if (run.attempt > 1)
      for (const event of await missingStart(claim, stores.events, agent.model.name))
        await writer.write(event);
    const interrupts = trackInterrupts(stores, input);
    const observers: readonly RunObserver[] = [
      threadLimit(services, lease, bytes),
      interrupts,
      releaseQuota(hold),
      { beforeWrite: (event) => reportFailure(event, failures.cause, claim, services) },
      prepared.runOptions,
      prepared.deferredResults,
      recovery(previous, writer),
    ];

    for await (const event of runAgent(agent, { ...input, onFailure: failures.hear })) {
      if (!mayWrite(event)) continue;
      const watching = event.path || isProgress(event.event) ? [] : observers;
      const more: StreamEvent[] = [];
      for (const each of watching) more.push(...((await each.beforeWrite?.(event)) ?? []));
      await writer.write(...more, event);
      for (const each of watching) await each.afterWrite?.(event);
      last = event;
    }

    failures.ended(last);
    publishEnd(stores.bus, owner, run, last?.event === "done" ? last.data.status : "error");
    const open = interrupts.open();
    if (last?.event === "done" && last.data.status === "interrupted" && open.length > 0)
      services.onInterrupted?.({ owner, run, interrupts: open });
  } catch (error) {
    control.handedOver.throwIfAborted();
    if (hasCode(error, "lease_lost")) throw error;
    await hold?.release();
    const failure = AppError.from(error);
    services.onFailed?.(run, failure);
    await recount({ threads: stores.threads, quotas }, lease);
    await settleAsFailed(claim, services, failure.toInfo(), control.handedOver);
    throw error;
  } finally {
    hold?.leave();
  }
}

/**
 * Throws once the run is handed over. While tool calls are still running here it only drops events: another process must
 * not start those calls again before they have ended.
 */
function untilHandedOver(handedOver: AbortSignal): (event: StreamEvent) => boolean {
  const running = new Set<string>();
  return (event) => {
    if (!event.path && event.event === "on_tool_start") running.add(event.data.call_id);
    if (!event.path && event.event === "on_tool_end") running.delete(event.data.call_id);
    if (handedOver.aborted && running.size > 0) return false;
    handedOver.throwIfAborted();
    return true;
  };
}

/** Before the end is written: a client that reads it may start the next run at once. */
const releaseQuota = (hold: Hold | undefined): RunObserver => ({
  beforeWrite: (event) => (isTerminal(event.event) ? hold?.release() : undefined),
});

function reportFailure(
  event: StreamEvent,
  cause: AppError | undefined,
  { run }: Claim,
  services: RunServices,
): undefined {
  if (event.event === "error" && cause) services.onFailed?.(run, cause);
}

/** Ends the spans that the previous attempt left open, innermost first. */
const recovery = ({ openings }: PreviousAttempt, writer: RunWriter): RunObserver => ({
  async afterWrite(event) {
    if (event.event !== "run_resumed" || openings.length === 0) return;
    await writer.write(...openings.toReversed().map(interruptedEnd));
  },
});

/** How long to wait before an unreachable store is tried again, in ms. */
const RETRY_MS = 1_000;

/**
 * Settles a run that failed outside the loop, as soon as the store is reachable, unless another process has taken it over
 * by then or `handedOver` aborts. Never throws.
 */
async function settleAsFailed(
  claim: Claim,
  { stores }: RunServices,
  error: ErrorInfo,
  handedOver: AbortSignal,
): Promise<void> {
  while (!handedOver.aborted) {
    try {
      return await writeFailure(claim, stores, error);
    } catch (failure) {
      if (!hasCode(failure, "unavailable")) return;
      await sleep(RETRY_MS, undefined, { signal: handedOver }).catch(() => {});
    }
  }
}

/**
 * Ends open spans, answers open calls, keeps the accepted input, and writes the error last. All in one step, because a full
 * store still has room for the end of a run.
 */
async function writeFailure(claim: Claim, stores: Stores, error: ErrorInfo): Promise<void> {
  const { lease, run, request } = claim;
  const { events, threads, bus } = stores;
  const start = await missingStart(claim, events, request.model ?? "");
  const { openings, usage } = await previousAttempt(events, lease);
  const messages = await threads.messages(lease.owner, lease.thread_id);
  const { status, outcome, end } = endOf(request, error, usage);
  const results = await resultsFor(unanswered(messages), claim, stores, outcome);
  await createWriter(events, lease).write(
    ...start,
    ...openings.toReversed().map((opening) => failedEnd(opening, error)),
    ...[...results, ...unknownTo(messages, request.input)].map(
      (message): StreamEvent => ({ event: "on_message", data: { message } }),
    ),
    end,
  );
  publishEnd(bus, lease.owner, run, status);
}

/** Results for the calls that a failing run leaves open. */
async function resultsFor(
  calls: readonly ToolCall[],
  { lease: { owner, thread_id }, request }: Claim,
  { deferredCalls: store }: Stores,
  outcome: string,
): Promise<Message[]> {
  const standIn = standIns({ store, thread: { owner, thread_id } });
  const results: Message[] = [];
  for (const call of calls) {
    const found = await standIn(call, { isGivenUp: request.cancel ?? false });
    const { output, error } = found ?? failed(outcome);
    results.push(toolMessage(call, output, error));
  }
  return results;
}

/** A run that only cancels open questions succeeds even if its agent cannot be built. */
function endOf({ cancel }: RunRequest, error: ErrorInfo, usage: Usage) {
  const status = cancel ? "cancelled" : "error";
  const outcome = cancel ? "Cancelled before it was run." : `Outcome unknown: ${error.message}`;
  const end: StreamEvent = cancel
    ? { event: "done", data: { status: "cancelled", stop_reason: "cancelled", usage } }
    : { event: "error", data: { ...error, usage } };
  return { status, outcome, end } as const;
}

/** The first event of a run whose process died before it wrote one. */
async function missingStart({ lease, run }: Claim, log: EventLog, model: string): Promise<StreamEvent[]> {
  const { last } = await log.bounds(lease);
  return last === 0 ? [{ event: "run_start", data: { agent: run.agent, model, attempt: 1 } }] : [];
}

/** Events that may wait for the store at a time; past it the run waits for the store. */
const MAX_UNWRITTEN = 256;

interface RunWriter {
  /**
   * Resolves at once for a progress event; otherwise when the events are written. Throws the error that kept an earlier
   * event from being written.
   */
  write(...events: readonly StreamEvent[]): Promise<void>;
}

/** The one writer of a run: stamps events and appends them to the log, in order. */
function createWriter(log: EventLog, lease: Lease): RunWriter {
  let unwritten = 0;
  let failure: unknown;

  const writeProgress = (event: StreamEvent) => {
    unwritten++;
    const written = log.append(lease, [stamp(event, lease)]).then(
      () => void unwritten--,
      (error: unknown) => {
        failure ??= error;
      },
    );
    return unwritten < MAX_UNWRITTEN ? undefined : written;
  };

  return {
    async write(...events) {
      if (failure) throw failure;
      const [event] = events;
      if (events.length === 1 && event && (event.path || isProgress(event.event))) await writeProgress(event);
      else
        await log.append(
          lease,
          events.map((each) => stamp(each, lease)),
        );
    },
  };
}

function stamp(event: StreamEvent, { run_id, thread_id }: Lease): StreamEvent {
  if (event.event === "on_chat_model_stream") return event;
  const { event: name, data, ...rest } = event;
  // An event of a subagent keeps the ids of its own run.
  const ids = rest.path ? { run_id, thread_id, ...rest } : { ...rest, run_id, thread_id };
  // Only the order of the keys changes, and what every event has.
  return { event: name, ...ids, ts: new Date().toISOString(), data } as StreamEvent;
}

type EndStatus = Extract<UserEvent, { event: "run_ended" }>["data"]["status"];

/** Tells the run's user that it has started. A run that is taken over has started before. */
function publishStart(bus: EventBus, owner: Owner, run: RunRecord): void {
  if (run.attempt === 1) bus.publish(owner, { event: "run_started", data: idsOf(run) });
}

/** Call it once the end is written. */
export function publishEnd(bus: EventBus, owner: Owner, run: RunRecord, status: EndStatus): void {
  bus.publish(owner, { event: "run_ended", data: { ...idsOf(run), status } });
}

const idsOf = ({ thread_id, id, agent }: RunRecord) => ({ thread_id, run_id: id, agent });
