// Going on with threads whose calls have got their results from outside, or will not get them any more.

import type { DueCalls } from "../core/deferred-calls.ts";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import { unanswered } from "../core/messages.ts";
import type { Stores } from "../core/stores.ts";
import type { Logger } from "./executor.ts";

/** Threads that are gone on with in one go. */
const AT_ONCE = 32;

export interface WakeServices {
  readonly stores: Stores;
  readonly logger: Logger;
  /** Starts a run without a message of its own, with the thread's agent. Throws what a start throws. */
  resume(owner: Owner, threadId: string): Promise<unknown>;
}

/** Never throws: what cannot go on now is due again. */
export async function wakeThreads({ stores, logger, resume }: WakeServices): Promise<void> {
  try {
    for (const due of await stores.deferredCalls.due(AT_ONCE)) await wake(due);
  } catch (err) {
    logger.error({ err }, "could not look for results that have come");
  }

  async function wake({ owner, thread_id, call_ids }: DueCalls): Promise<void> {
    try {
      const waiting = unanswered(await stores.threads.messages(owner, thread_id)).map(({ id }) => id);
      const over = call_ids.filter((id) => !waiting.includes(id));
      await forget(owner, thread_id, over);
      if (over.length < call_ids.length) await resume(owner, thread_id);
    } catch (err) {
      // Whoever was faster goes on with the thread.
      if (hasCode(err, "thread_busy")) return;
      logger.error({ err, thread_id }, "could not go on with a thread");
      // Its agent is gone, or its model: that is no better the next time.
      if (hasCode(err, "invalid_request")) await forget(owner, thread_id, call_ids);
    }
  }

  async function forget(owner: Owner, thread_id: string, calls: readonly string[]): Promise<void> {
    for (const call_id of calls) await stores.deferredCalls.forget({ owner, thread_id, call_id });
  }
}
