// Going on with threads whose calls have got their results from outside, or will not get them any more.

import type { DeferredCall, DueCalls } from "../core/deferred-calls.ts";
import { lateMessage, nextStep } from "../core/delivered-result.ts";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { UserMessage } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import type { Stores } from "../core/stores.ts";
import type { Logger } from "../lib/logger.ts";

/** Threads that are gone on with in one go. */
const AT_ONCE = 32;

export interface WakeServices {
  readonly stores: Stores;
  readonly logger: Logger;
  /** Starts a run of the thread's agent: with these messages, or, without any, one that resumes the calls that wait. */
  start(owner: Owner, threadId: string, messages: readonly UserMessage[]): Promise<unknown>;
}

/** Never throws: what cannot go on now is due again. */
export async function wakeThreads({ stores, logger, start }: WakeServices): Promise<void> {
  const { deferredCalls, threads } = stores;
  try {
    for (const due of await deferredCalls.due(AT_ONCE)) await wake(due);
  } catch (err) {
    logger.error({ err }, "could not look for results that have come");
  }

  async function wake({ owner, thread_id, call_ids }: DueCalls): Promise<void> {
    const calls: DeferredCall[] = [];
    try {
      for (const call_id of call_ids)
        calls.push(...found(await deferredCalls.get({ owner, thread_id, call_id })));
      const messages = await threads.messages(owner, thread_id);
      const that = (step: ReturnType<typeof nextStep>) =>
        calls.filter((call) => nextStep(call, messages) === step);
      await forget(that("forget"));
      if (that("resume").length > 0) {
        await start(owner, thread_id, []);
        await tellRunning(stores, that("tell"));
      }
      // A message would end the wait for other calls, so it comes once they have their answers.
      else if (that("tell").length > 0 && unanswered(messages).length === 0)
        await start(owner, thread_id, that("tell").map(lateMessage));
    } catch (err) {
      // Another run has started: it continues the thread.
      if (hasCode(err, "thread_busy")) return tellRunning(stores, calls);
      logger.error({ err, thread_id }, "could not continue a thread");
      // Its agent is gone, or its model: that is no better the next time.
      if (hasCode(err, "invalid_request")) await forget(calls);
    }
  }

  async function forget(calls: readonly DeferredCall[]): Promise<void> {
    for (const call of calls) await deferredCalls.forget(call);
  }
}

const found = (call: DeferredCall | undefined) => (call ? [call] : []);

/**
 * Leaves late results with the run that is active on their thread, if there is one: it takes them in before its next model
 * call, or they join the thread when it ends. Never throws: what was not left is still due.
 */
export async function tellRunning({ runs }: Stores, calls: readonly DeferredCall[]): Promise<void> {
  try {
    for (const call of calls) {
      const { owner, thread_id } = call;
      const run = call.state === "late" && (await runs.active(owner, thread_id));
      if (run) await runs.steer(owner, thread_id, run.id, lateMessage(call));
    }
  } catch {
    // Its inbox is full, or the store is away.
  }
}
