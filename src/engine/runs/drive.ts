// Executes one claimed run from its first to its last event: prepares it, runs the loop, and writes every event to the
// log. Runs whether or not there are viewers, because viewers read the log.

import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, UserEvent } from "../../agent/core/bus.ts";
import { NOT_RUN } from "../../agent/core/delivered-result.ts";
import { AppError, type ErrorInfo, hasCode, SERVER_FAILED } from "../../agent/core/errors.ts";
import { runAgent } from "../../agent/core/loop.ts";
import {
  callsByUsers,
  type Message,
  type ToolCall,
  type Usage,
  unanswered,
  unknownTo,
  withHitRatio,
} from "../../agent/core/message.ts";
import type { ModelRequest } from "../../agent/core/model.ts";
import type { RunRecord, RunRequest } from "../../agent/core/records.ts";
import type { Failure, ModelCallInfo, RunInput, StandIn } from "../../agent/core/run.ts";
import type { Claim, EventLog, Lease } from "../../agent/core/stores.ts";
import type { DeltaSink } from "../../agent/core/stream.ts";
import { failed, resultMessage } from "../../agent/core/tool.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { freeTick, isTickSpent, sharedTick } from "../../lib/ticks.ts";
import { doneEvent } from "../../protocol/end.ts";
import { isProgress, isTerminal, type StreamEvent } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { failedEnd, interruptedEnd } from "../../protocol/open-spans.ts";
import { type Hold, holdWhile } from "../quotas/holds.ts";
import { type InterruptTracker, standIns, trackInterrupts } from "./deferred.ts";
import { runLog } from "./logging.ts";
import { prepareRun } from "./prepare-run.ts";
import { firstAttempt, type PreviousAttempt, previousAttempt } from "./previous-attempt.ts";
import { restoredCalls, withRestored } from "./restored-calls.ts";
import type { Control, EndingRun, RunListener, RunObserver, RunServices } from "./services.ts";
import { recount, threadLimit } from "./thread-bytes.ts";
import { keepsWaitingKey } from "./waiting-key.ts";
import { createWriter, type RunWriter } from "./writer.ts";

/**
 * Resolves once the run is settled. Throws if the lease was lost or the run was handed over; another process then
 * continues it.
 */
export async function drive(claim: Claim, services: RunServices, control: Control): Promise<void> {
  const { stores, quotas } = services;
  const { run, lease } = claim;
  const { owner } = lease;
  await sharedTick(owner.tenant);
  const listeners = (services.listeners ?? []).map((listen) => listen(claim));
  const writer = createWriter(stores.events, lease, (ms) => {
    for (const each of listeners) each.onStored?.(ms);
  });
  publishStart(stores.bus, owner, run);
  const hold = quotas && holdWhile(quotas, { owner, thing: "runs", id: run.id });
  const log = runLog(services, claim);
  const mayWrite = untilHandedOver(control.handedOver);
  let last: StreamEvent | undefined;
  try {
    const previous = run.attempt > 1 ? await previousAttempt(stores.events, lease) : firstAttempt();
    const prepared = await prepareRun(claim, services, control, previous);
    const { agent, input, bytes } = prepared;
    if (run.attempt > 1)
      for (const event of await missingStart(claim, stores.events, agent.model.name))
        await writer.write(event);
    const interrupts = trackInterrupts(stores, input, run.agent);
    const bell = createBell(services, claim, interrupts);
    const observers: readonly RunObserver[] = [
      threadLimit(services, lease, bytes),
      interrupts,
      keepsWaitingKey(stores.items, claim),
      releaseQuota(hold),
      bell,
      { beforeWrite: (event) => reportFailure(event, log.cause, claim, services) },
      prepared.runOptions,
      prepared.deferredResults,
      recovery(previous, writer),
      log,
      ...listeners,
    ];

    const sent = requestLog(services, lease, previous.modelCalls);
    const priced = quotas ? { costOf: quotas.costOf } : {};
    const onFailure = (failure: Failure) => {
      log.hear(failure);
      for (const each of listeners) each.onFailure?.(failure);
    };
    const deltas: DeltaSink = (delta) => !control.handedOver.aborted && writer.take(delta);
    const observed = { ...overheard(listeners, sent), ...priced, onFailure, deltas };
    for await (const event of runAgent(agent, { ...input, ...observed })) {
      if (!mayWrite(event)) continue;
      last = event;
      if (event.path || isProgress(event.event)) {
        if (!writer.take(event)) await writer.write(event);
        if (event.path || event.event === "on_chat_model_stream") continue;
        for (const each of observers) each.onProgress?.(event);
      } else {
        const more: StreamEvent[] = [];
        for (const each of observers) {
          const work = each.beforeWrite?.(event);
          if (work) more.push(...((await work) ?? []));
        }
        await writer.write(...more, event);
        for (const each of observers) {
          const work = each.afterWrite?.(event);
          if (work) await work;
        }
        // A store that answers immediately would otherwise let thousands of messages pass in one tick of the event
        // loop.
        if (event.event === "on_message" && isTickSpent()) await sharedTick(owner.tenant);
      }
      // Lets runs that start together, such as subagents, all report their start before any of them continues.
      if (isBeginning(event)) await freeTick(owner.tenant);
    }

    log.ended(last);
    publishEnd(stores.bus, owner, run, last?.event === "done" ? last.data.status : "error");
    const open = last?.event === "done" && last.data.status === "interrupted" ? interrupts.open() : [];
    publishInterrupts(stores.bus, owner, run, open);
    bell.ring();
  } catch (error) {
    control.handedOver.throwIfAborted();
    if (hasCode(error, "lease_lost")) {
      for (const each of listeners) each.onLost?.();
      throw error;
    }
    const settled = failViewersLater(claim, services);
    try {
      await hold?.release();
      const failure = AppError.from(error);
      services.onFailed?.(run, failure);
      await recount({ threads: stores.threads, quotas }, lease);
      const end = await settleAsFailed(claim, services, failure.toInfo(), control.handedOver);
      if (end) for (const each of listeners) await each.afterWrite?.(end);
    } finally {
      settled();
    }
    throw error;
  } finally {
    hold?.leave();
  }
}

const isBeginning = ({ event, path }: StreamEvent) =>
  !path && (event === "run_start" || event === "run_resumed");

/**
 * Throws once the run is handed over and its tool calls have ended. Until then, drops events, so another process does
 * not start the same calls again.
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

/** Reports model requests and responses to observers. */
function overheard(
  listeners: readonly RunListener[],
  { onModelRequest }: Pick<RunInput, "onModelRequest">,
): Pick<RunInput, "onModelRequest" | "onModelReply"> {
  const listening = listeners.filter((each) => each.onModelRequest || each.onModelReply);
  if (listening.length === 0) return onModelRequest ? { onModelRequest } : {};
  return {
    async onModelRequest(request, call) {
      for (const each of listening) each.onModelRequest?.(request);
      await onModelRequest?.(request, call);
    },
    onModelReply(reply) {
      for (const each of listening) each.onModelReply?.(reply);
    },
  };
}

/** Stores model requests if the server's settings enable it. A failure to store one does not fail the run. */
function requestLog({ sentRequests, logger }: RunServices, lease: Lease, modelCalls: number) {
  let number = modelCalls;
  if (!sentRequests) return {};
  return {
    async onModelRequest(request: ModelRequest, call: ModelCallInfo): Promise<void> {
      number++;
      await sentRequests.record(lease, number, request, call).catch((error: unknown) => {
        const { run_id, thread_id } = lease;
        logger.warn({ err: error, run_id, thread_id }, "could not store a model request");
      });
    },
  };
}

/** Releases the quota before the end is written, because a client that reads the end may start the next run at once. */
const releaseQuota = (hold: Hold | undefined): RunObserver => ({
  beforeWrite: (event) => (isTerminal(event.event) ? hold?.release() : undefined),
});

/** Before the end is written, prepares the notifications; `ring` sends them. */
function createBell(
  { beforeEnd }: RunServices,
  claim: Claim,
  { open }: Pick<InterruptTracker, "open">,
): RunObserver & { ring(): void } {
  let ring = () => {};
  return {
    beforeWrite(end) {
      if (!beforeEnd || (end.event !== "done" && end.event !== "error")) return undefined;
      const isWaiting = end.event === "done" && end.data.status === "interrupted";
      return beforeEnd(endingOf(claim, end, isWaiting ? open() : [])).then((prepared) => {
        ring = prepared;
      });
    },
    ring: () => ring(),
  };
}

const endingOf = (
  { lease: { owner }, run, request }: Claim,
  end: EndingRun["end"],
  interrupts: readonly Interrupt[],
): EndingRun => ({ owner, run, end, interrupts, isChild: request.lineage !== undefined });

/** Sends the notifications for a run that the store has ended. Never throws. */
export async function ringAfter(
  { beforeEnd }: Pick<RunServices, "beforeEnd">,
  claim: Claim,
  end: StreamEvent,
): Promise<void> {
  if (end.event !== "done" && end.event !== "error") return;
  (await beforeEnd?.(endingOf(claim, end, [])))?.();
}

function reportFailure(
  event: StreamEvent,
  cause: AppError | undefined,
  { run }: Claim,
  services: RunServices,
): undefined {
  if (event.event === "error" && cause) services.onFailed?.(run, cause);
}

/** Ends the spans that the previous attempt left open, starting with the innermost. */
const recovery = ({ open }: PreviousAttempt, writer: RunWriter): RunObserver => ({
  afterWrite(event) {
    if (event.event !== "run_resumed" || open.length === 0) return undefined;
    return writer.write(...open.toReversed().map(interruptedEnd));
  },
});

/** The number of milliseconds to wait before retrying an unreachable store. */
const RETRY_MS = 1_000;

/**
 * Settles a run that failed outside the loop, as soon as the store is reachable. Stops if another process has
 * taken over the run or `handedOver` aborts. Returns the last event if this call wrote it. Never throws.
 */
async function settleAsFailed(
  claim: Claim,
  services: RunServices,
  error: ErrorInfo,
  handedOver: AbortSignal,
): Promise<StreamEvent | undefined> {
  // If there was no room for the answer, an incomplete message would not fit either. A full store accepts
  // only the end of a run.
  let keepsWords = error.code !== "limit_exceeded";
  while (!handedOver.aborted) {
    try {
      return await writeFailure(claim, services, error, keepsWords);
    } catch (failure) {
      if (!hasCode(failure, "unavailable")) return undefined;
      keepsWords = false;
      await sleep(RETRY_MS, undefined, { signal: handedOver }).catch(() => {});
    }
  }
  return undefined;
}

/**
 * Tells viewers in this process that the run's end could not be stored, unless the returned function is called within a
 * lease's duration. This spares viewers from waiting for a store that refuses the end.
 */
function failViewersLater({ lease }: Claim, { stores, logger }: RunServices): () => void {
  const timer = setTimeout(() => {
    const { run_id, thread_id } = lease;
    logger.warn({ run_id, thread_id }, "the end of a run cannot be stored; will retry");
    stores.events.fail(
      lease,
      new AppError("unavailable", "The end of this run could not be stored. Try again later."),
    );
  }, stores.runs.leaseMs);
  return () => clearTimeout(timer);
}

/**
 * Ends open spans, answers open calls, keeps the accepted input and, if `keepsWords` is set, the incomplete answer.
 * Writes the error last. All of this is one write, because even a full store has room for the end of a run.
 */
async function writeFailure(
  claim: Claim,
  services: RunServices,
  error: ErrorInfo,
  keepsWords: boolean,
): Promise<StreamEvent> {
  const { stores, restoration } = services;
  const { lease, run, request } = claim;
  const { events, threads, bus } = stores;
  const start = await missingStart(claim, events, request.model ?? "");
  const { open: leftOpen, usage, partial } = await previousAttempt(events, lease);
  const { owner, thread_id } = lease;
  const messages = await threads.messages(owner, thread_id);
  const { status, outcome, end } = endOf(request, error, withHitRatio(usage));
  const open = request.appends ? [] : unanswered(messages);
  const restored = restoredCalls(restoration, { messages, open: open.map(({ id }) => id) });
  const deferred = standIns({ store: stores.deferredCalls, thread: { owner, thread_id } });
  const standIn = withRestored(deferred, restored, restoration);
  const results = await resultsFor(open, standIn, { outcome, isGivenUp: request.cancel ?? false });
  const cut = keepsWords ? partial.message(status === "cancelled" ? "stopped" : "failed") : undefined;
  const news = unknownTo(messages, request.input);
  const notRun = callsByUsers(news).map((call) => resultMessage(call, failed(NOT_RUN)));
  const ring = await services.beforeEnd?.(endingOf(claim, end, []));
  await createWriter(events, lease).write(
    ...start,
    ...leftOpen.toReversed().map((span) => failedEnd(span, error)),
    ...[...(cut ? [cut] : []), ...results, ...news, ...notRun].map(
      (message): StreamEvent => ({ event: "on_message", data: { message } }),
    ),
    end,
  );
  publishEnd(bus, owner, run, status);
  ring?.();
  return end;
}

/** Returns results for the calls that a failing run leaves open. */
async function resultsFor(
  calls: readonly ToolCall[],
  standIn: StandIn,
  { outcome, isGivenUp }: { readonly outcome: string; readonly isGivenUp: boolean },
): Promise<Message[]> {
  const results: Message[] = [];
  for (const call of calls) {
    const found = await standIn(call, { isGivenUp });
    results.push(resultMessage(call, found ?? failed(outcome)));
  }
  return results;
}

/** A run that only cancels open questions succeeds even if its agent cannot be built. */
function endOf({ cancel }: RunRequest, error: ErrorInfo, usage: Usage) {
  const status = cancel ? "cancelled" : "error";
  const unknown = error.code === "unavailable" ? SERVER_FAILED : `Outcome unknown: ${error.message}`;
  const outcome = cancel ? "Cancelled before it was run." : unknown;
  const end: EndingRun["end"] = cancel
    ? doneEvent({ status: "cancelled", stop_reason: "cancelled", usage })
    : { event: "error", data: { ...error, usage } };
  return { status, outcome, end } as const;
}

/** Returns the first event for a run whose process died before writing one. */
async function missingStart(
  { lease, run, request }: Claim,
  log: EventLog,
  model: string,
): Promise<StreamEvent[]> {
  const { last } = await log.bounds(lease);
  if (last > 0) return [];
  const data = { agent: run.agent, model, attempt: 1, ...omitUndefined({ replaces: request.replaces }) };
  return [{ event: "run_start", data }];
}

type EndStatus = Extract<UserEvent, { event: "run_ended" }>["data"]["status"];

/** Announces the start to the run's user, unless another process already started the run. */
function publishStart(bus: EventBus, owner: Owner, run: RunRecord): void {
  if (run.attempt === 1) bus.publish(owner, { event: "run_started", data: idsOf(run) });
}

/** Call this after the end is written. */
export function publishEnd(bus: EventBus, owner: Owner, run: RunRecord, status: EndStatus): void {
  bus.publish(owner, { event: "run_ended", data: { ...idsOf(run), status } });
}

/** Publishes interrupts last, because they can be answered only after the run has ended. */
function publishInterrupts(bus: EventBus, owner: Owner, run: RunRecord, open: readonly Interrupt[]): void {
  for (const { id, kind, name } of open)
    bus.publish(owner, { event: "interrupt_opened", data: { ...idsOf(run), id, kind, name } });
}

const idsOf = ({ thread_id, id, agent }: RunRecord) => ({ thread_id, run_id: id, agent });
