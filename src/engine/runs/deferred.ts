// Handles answers that arrive from outside: late callback results and expiring questions. Records both as deferred
// calls and resumes their threads when they are due. Provides results for calls that a thread no longer waits for.

import {
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  type DueCalls,
  hasResult,
  tokenHash,
} from "../../agent/core/deferred-calls.ts";
import { boundedResult, lateMessage, nextStep, OUTCOME_UNKNOWN } from "../../agent/core/delivered-result.ts";
import { hasCode } from "../../agent/core/errors.ts";
import { type UserMessage, unanswered } from "../../agent/core/message.ts";
import { closedBy, openInterrupts } from "../../agent/core/open-interrupts.ts";
import type { RunInput, StandIn } from "../../agent/core/run.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { type DoneResult, done, failed } from "../../agent/core/tool.ts";
import type { Logger } from "../../lib/logger.ts";
import { randomId } from "../../lib/random-id.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { logFailure } from "./logging.ts";
import type { RunObserver } from "./services.ts";

/** The number of threads to resume at a time. */
const BATCH_SIZE = 32;

export interface ResumeServices {
  readonly stores: Stores;
  readonly logger: Logger;
  /** Starts a run of the thread's agent with these messages. If there are none, the run resumes the open calls. */
  start(owner: Owner, threadId: string, messages: readonly UserMessage[]): Promise<unknown>;
}

/**
 * Resumes the threads whose deferred calls have a result or have expired. If a thread cannot be resumed, it
 * stays due. Never throws.
 */
export async function resumeDeferred({ stores, logger, start }: ResumeServices): Promise<void> {
  const { deferredCalls, runs, threads } = stores;
  try {
    for (const due of await deferredCalls.due(BATCH_SIZE)) await resume(due);
  } catch (err) {
    logFailure(logger, { err }, "could not check for deferred results");
  }

  async function resume({ owner, thread_id, call_ids }: DueCalls): Promise<void> {
    const calls: DeferredCall[] = [];
    try {
      for (const call_id of call_ids) {
        const call = await deferredCalls.get({ owner, thread_id, call_id });
        if (call) calls.push(call);
      }
      const messages = await threads.messages(owner, thread_id);
      const [last] = (await runs.list(owner, thread_id, { limit: 1 })).items;
      const that = (step: ReturnType<typeof nextStep>) =>
        calls.filter((call) => nextStep(call, messages, last?.status) === step);
      await forget(that("forget"));
      if (that("resume").length > 0) {
        await start(owner, thread_id, []);
        await steerLateResults(stores, that("tell"));
      }
      // A message would end the wait for other calls, so it is sent only after they have results.
      else if (that("ask").length + that("tell").length > 0 && unanswered(messages).length === 0) {
        await start(owner, thread_id, [...that("ask"), ...that("tell")].map(lateMessage));
        // Asks only once, because the model might not answer.
        await forget(that("ask"));
      }
    } catch (err) {
      // Another run has started and continues the thread.
      if (hasCode(err, "thread_busy")) return steerLateResults(stores, calls);
      logFailure(logger, { err, thread_id }, "could not resume a thread");
      // The agent or its model was removed from the configuration, so a retry would fail the same way.
      if (hasCode(err, "invalid_request")) await forget(calls);
    }
  }

  async function forget(calls: readonly DeferredCall[]): Promise<void> {
    for (const call of calls) await deferredCalls.forget(call);
  }
}

/** Sends late results to the thread's active run, if any. If a result cannot be sent, it stays due. Never throws. */
export async function steerLateResults({ runs }: Stores, calls: readonly DeferredCall[]): Promise<void> {
  try {
    for (const call of calls) {
      const { owner, thread_id } = call;
      const run = call.state === "late" && (await runs.active(owner, thread_id));
      if (run) await runs.steer(owner, thread_id, run.id, lateMessage(call));
    }
  } catch {
    // The inbox is full or the store is unreachable. A later attempt sends the result.
  }
}

/** Replaces the tool's name in the record of an expiring question. No tool can have this name. */
export const EXPIRY = "(expiry)";

export interface InterruptTracker extends RunObserver {
  /** Returns the run's open questions, or an empty list if the run's parent shows them to the user. */
  open(): Interrupt[];
}

/**
 * Tracks a run's questions. Schedules the expiry of a question before the question is shown, and cancels the expiry
 * before the call can run. Any process can then resume the thread on time. When the run closes older questions, it
 * notifies the user's subscribers.
 */
export function trackInterrupts(
  { deferredCalls, bus }: Pick<Stores, "deferredCalls" | "bus">,
  { owner, threadId: thread_id, id: run_id, lineage, state }: RunInput,
  agent: string,
): InterruptTracker {
  // A waiting parent shows its child's questions, so the parent's thread is the one to resume.
  const isShownHere = lineage?.parent.background ?? true;
  const known = new Map(openInterrupts(state).map((each) => [each.id, each]));
  const shown = new Map<string, Interrupt>();
  const before = new Set(isShownHere ? known.keys() : []);

  /** Several subagents can ask questions within one call. The earliest expiry applies. */
  async function scheduleExpiry(call_id: string): Promise<void> {
    if (!isShownHere) return;
    const [expires_at] = [...known.values()]
      .flatMap((each) => (each.call_id === call_id && each.expires_at ? [each.expires_at] : []))
      .sort();
    const key = { owner, thread_id, call_id };
    if (expires_at === undefined) return deferredCalls.forget(key);
    try {
      await deferredCalls.open({
        ...key,
        run_id,
        tool: EXPIRY,
        token_hash: tokenHash(randomId()),
        expires_at,
      });
      await deferredCalls.accept(key);
    } catch (error) {
      // The thread's other deferred calls also resume it. The new run will ask again and schedule this expiry.
      if (!hasCode(error, "limit_exceeded")) throw error;
    }
  }

  return {
    beforeWrite(event) {
      if (event.event !== "on_interrupt" && event.event !== "on_resume") return undefined;
      const { id } = event.data;
      const asked = known.get(id);
      if (event.event === "on_interrupt") {
        known.set(id, event.data);
        shown.set(id, event.data);
      } else {
        known.delete(id);
        shown.delete(id);
      }
      const { call_id, expires_at } = known.get(id) ?? asked ?? {};
      return call_id !== undefined && expires_at !== undefined ? scheduleExpiry(call_id) : undefined;
    },
    afterWrite(event) {
      for (const id of closedBy(event))
        if (before.delete(id))
          bus.publish(owner, { event: "interrupt_closed", data: { thread_id, run_id, agent, id } });
      return undefined;
    },
    open: () => (isShownHere ? [...shown.values()] : []),
  };
}

export interface StandInServices {
  readonly store: DeferredCallStore;
  readonly thread: { readonly owner: Owner; readonly thread_id: string };
  /** Called with the stored call before its result is in the thread. */
  onAnswer?(call: DeferredCall): void;
}

/**
 * Creates results for deferred calls that a thread no longer waits for: the delivered result, or a placeholder. The
 * store decides which of the two came first. Throws the store's errors.
 */
export function standIns({ store, thread, onAnswer }: StandInServices): StandIn {
  return async (call, { isGivenUp }) => {
    const key: CallKey = { ...thread, call_id: call.id };
    const before = await store.get(key);
    if (!before || before.tool !== call.name) return undefined;
    const now = await (isGivenUp ? store.close(key) : store.leave(key));
    if (now) onAnswer?.(now);
    if (now?.state === "delivered") return boundedResult(now);
    return isGivenUp && !(now && hasResult(now.state)) ? cancelled(before) : pending(before);
  };
}

function pending({ state, tool, expires_at }: DeferredCall): DoneResult {
  if (state === "sent")
    return failed(`${OUTCOME_UNKNOWN} If its result still arrives, it arrives as a separate message.`);
  return done(
    `Pending: the server of \`${tool}\` has accepted this call and delivers its result later, by ${expires_at}. \
The result comes as a message of its own; the conversation continues without it. Do not repeat the call.`,
  );
}

function cancelled({ state }: DeferredCall): DoneResult {
  if (state === "sent") return failed(OUTCOME_UNKNOWN);
  return failed(
    "Cancelled: the tool's server had accepted this call and may execute it; its result is no longer accepted.",
  );
}
