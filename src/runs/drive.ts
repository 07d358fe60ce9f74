// Drives one claimed run from its first event to its last. The run belongs to the server: nobody needs to be
// watching, and whoever watches reads the log.

import { setTimeout as sleep } from "node:timers/promises";
import type { EventBus, UserEvent } from "../core/bus.ts";
import { AppError, type ErrorInfo, hasCode } from "../core/errors.ts";
import { isProgress, isTerminal, type StreamEvent } from "../core/event.ts";
import { failedEnd, interruptedEnd } from "../core/grammar.ts";
import type { Owner } from "../core/ids.ts";
import { runAgent } from "../core/loop.ts";
import { type Message, type ToolCall, toolMessage, type Usage } from "../core/message.ts";
import { unanswered, unknownTo } from "../core/messages.ts";
import type { RunRecord, RunRequest } from "../core/records.ts";
import type { Claim, EventLog, Lease, Stores } from "../core/stores.ts";
import { failed } from "../core/tool.ts";
import { keep } from "../quotas/holds.ts";
import { followAsked, standIns } from "./deferred.ts";
import { failureLog } from "./logging.ts";
import { keptOptions, type Leftovers, leftovers, load, NOTHING } from "./prepare.ts";
import type { Control, DriveServices } from "./services.ts";

/**
 * Resolves once the run is settled. Throws when it could not be, because the lease is lost or the run was left: it is
 * then another process's, or the next one's.
 */
export async function drive(claim: Claim, services: DriveServices, control: Control): Promise<void> {
  const { bus, events } = services.stores;
  const { run, lease } = claim;
  const writer = createWriter(events, lease);
  announceStart(bus, lease.owner, run);
  const kept = services.quotas && keep(services.quotas, { owner: lease.owner, thing: "runs", id: run.id });
  const failures = failureLog(services.logger, claim);
  let last: StreamEvent | undefined;
  try {
    const before = run.attempt > 1 ? await leftovers(events, lease) : NOTHING;
    const { agent, input, options, forgetDelivered } = await load(claim, services, control, before);
    if (run.attempt > 1)
      for (const event of await missingStart(claim, services, agent.model.name)) await writer.write(event);
    const asked = followAsked(services.stores, input);
    const atWork = new Set<string>();
    for await (const event of runAgent(agent, { ...input, onFailure: failures.hear })) {
      // What a subagent says is the making of its own run.
      const isOwn = !event.path;
      if (isOwn && event.event === "on_tool_start") atWork.add(event.data.call_id);
      if (isOwn && event.event === "on_tool_end") atWork.delete(event.data.call_id);
      // A call that is still at work here must not be begun elsewhere.
      if (control.left.aborted && atWork.size > 0) continue;
      control.left.throwIfAborted();
      if (isOwn && (event.event === "on_interrupt" || event.event === "on_resume")) await asked.before(event);
      // Who reads the end may start the next run at once.
      if (isTerminal(event.event)) await kept?.release();
      if (isOwn && event.event === "error" && failures.cause) services.onFailed?.(run, failures.cause);
      const waits = isOwn && event.event === "done" && event.data.status === "interrupted";
      await writer.write(...(waits ? keptOptions(options, input.state) : []), event);
      if (isOwn && event.event === "on_message") await forgetDelivered(event.data.message);
      if (isOwn && event.event === "run_resumed") await closeLeftovers(before, writer);
      last = event;
    }
    failures.ended(last);
    announceEnd(bus, lease.owner, run, last?.event === "done" ? last.data.status : "error");
    // What a subagent asks that somebody waits for is asked by whoever waits.
    const interrupts = input.lineage?.parent.background === false ? [] : asked.open();
    if (last?.event === "done" && last.data.status === "interrupted" && interrupts.length > 0)
      services.onInterrupted?.({ owner: lease.owner, run, interrupts });
  } catch (error) {
    control.left.throwIfAborted();
    if (hasCode(error, "lease_lost")) throw error;
    await kept?.release();
    const failure = AppError.from(error);
    services.onFailed?.(run, failure);
    await settleAsFailed(claim, services, failure.toInfo(), control.left);
    throw error;
  } finally {
    kept?.leave();
  }
}

/** What the dead attempt left open is closed before the new one goes on, the innermost first. */
async function closeLeftovers({ openings }: Leftovers, writer: RunWriter): Promise<void> {
  if (openings.length > 0) await writer.write(...openings.toReversed().map(interruptedEnd));
}

/** How often a store that is away is tried again, in ms. */
const RETRY_MS = 1_000;

/**
 * What went wrong outside the loop still ends the run as it should, as soon as the store is there: unless it was taken
 * over by then, or `left` aborts. Never throws.
 */
async function settleAsFailed(
  claim: Claim,
  services: DriveServices,
  error: ErrorInfo,
  left: AbortSignal,
): Promise<void> {
  while (!left.aborted) {
    try {
      return await writeFailure(claim, services, error);
    } catch (failure) {
      if (!hasCode(failure, "unavailable")) return;
      await sleep(RETRY_MS, undefined, { signal: left }).catch(() => {});
    }
  }
}

/**
 * Brackets closed, calls answered, what was accepted kept, and the error last: all as one, as an end has room in a store
 * that is full.
 */
async function writeFailure(claim: Claim, services: DriveServices, error: ErrorInfo): Promise<void> {
  const { lease, run, request } = claim;
  const { events, threads } = services.stores;
  const start = await missingStart(claim, services, request.model ?? "");
  const { openings, usage } = await leftovers(events, lease);
  const messages = await threads.messages(lease.owner, lease.thread_id);
  const { status, outcome, end } = lastWords(request, error, usage);
  const results = await answersTo(unanswered(messages), claim, services.stores, outcome);
  await createWriter(events, lease).write(
    ...start,
    ...openings.toReversed().map((opening) => failedEnd(opening, error)),
    ...[...results, ...unknownTo(messages, request.input)].map(
      (message): StreamEvent => ({ event: "on_message", data: { message } }),
    ),
    end,
  );
  announceEnd(services.stores.bus, lease.owner, run, status);
}

/** To calls that the run leaves open as it fails. */
async function answersTo(
  calls: readonly ToolCall[],
  { lease: { owner, thread_id }, request }: Claim,
  { deferredCalls: store }: Stores,
  outcome: string,
): Promise<Message[]> {
  const standIn = standIns({ store, thread: { owner, thread_id } });
  const answers: Message[] = [];
  for (const call of calls) {
    const found = await standIn(call, { isGivenUp: request.cancel ?? false });
    const { output, error } = found ?? failed(outcome);
    answers.push(toolMessage(call, output, error));
  }
  return answers;
}

/** One that only cancels what waits needs nothing that could have failed. */
function lastWords({ cancel }: RunRequest, error: ErrorInfo, usage: Usage) {
  const status = cancel ? "cancelled" : "error";
  const outcome = cancel ? "Cancelled before it was run." : `Outcome unknown: ${error.message}`;
  const end: StreamEvent = cancel
    ? { event: "done", data: { status: "cancelled", stop_reason: "cancelled", usage } }
    : { event: "error", data: { ...error, usage } };
  return { status, outcome, end } as const;
}

/** A process may have died before it wrote the first event; a run begins with `run_start` all the same. */
async function missingStart(
  { lease, run }: Claim,
  { stores }: DriveServices,
  model: string,
): Promise<StreamEvent[]> {
  const { last } = await stores.events.bounds(lease);
  return last === 0 ? [runStart(run, model)] : [];
}

function runStart({ agent }: RunRecord, model: string): StreamEvent {
  return { event: "run_start", data: { agent, model, attempt: 1 } };
}

// The one writer of a run: stamps events and writes them to the log, in order.
/** Events that may be on their way to the store at once; past it the run waits for the store. */
const MAX_UNWRITTEN = 256;

export interface RunWriter {
  /**
   * Resolves when a following step may rely on the events: at once for one that only shows progress, when they
   * are written for everything else. Throws what kept an earlier one from being written.
   */
  write(...events: readonly StreamEvent[]): Promise<void>;
}

export function createWriter(log: EventLog, lease: Lease): RunWriter {
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
  // What a subagent says is said by its own run.
  const ids = rest.path ? { run_id, thread_id, ...rest } : { ...rest, run_id, thread_id };
  // Only the order of the keys changes, and what every event has.
  return { event: name, ...ids, ts: new Date().toISOString(), data } as StreamEvent;
}

// Tells a run's user, wherever they listen, that it has begun and that it has ended.
type EndStatus = Extract<UserEvent, { event: "run_ended" }>["data"]["status"];

/** One that is taken over has begun before. */
export function announceStart(bus: EventBus, owner: Owner, run: RunRecord): void {
  if (run.attempt === 1) bus.publish(owner, { event: "run_started", data: named(run) });
}

/** To be called once the end is written. */
export function announceEnd(bus: EventBus, owner: Owner, run: RunRecord, status: EndStatus): void {
  bus.publish(owner, { event: "run_ended", data: { ...named(run), status } });
}

const named = ({ thread_id, id, agent }: RunRecord) => ({ thread_id, run_id: id, agent });
