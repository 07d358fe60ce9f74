// Going on with threads whose calls have got their results from outside, or will not get them any more.

import {
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  type DueCalls,
  hasResult,
  tokenHash,
} from "../core/deferred-calls.ts";
import { boundedResult, lateMessage, nextStep } from "../core/delivered-result.ts";
import { hasCode } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Interrupt } from "../core/interrupt.ts";
import { openInterrupts } from "../core/interrupts.ts";
import { OUTCOME_UNKNOWN } from "../core/loop.ts";
import type { UserMessage } from "../core/message.ts";
import { unanswered } from "../core/messages.ts";
import type { RunInput, StandIn } from "../core/run.ts";
import type { Stores } from "../core/stores.ts";
import { type DoneResult, done, failed } from "../core/tool.ts";
import type { Logger } from "../lib/logger.ts";
import { randomId } from "../lib/random-id.ts";

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

// What a run has asked and still waits for. A question with an expiry is noted where results that come later are noted,
// so that any process goes on with the thread when its time is up.
/** In place of a tool's name: no tool is called so, and none takes the note for its own. */
export const EXPIRY = "(expiry)";

export interface Asked {
  /**
   * To be called before one of these, of the run itself, is written: a question is noted before anybody sees it, and its note is gone before
   * its call may run. Throws what the store throws.
   */
  before(event: Extract<StreamEvent, { event: "on_interrupt" | "on_resume" }>): Promise<void>;
  /** The questions of this run that are open, as they were shown; none of a child's, which somebody else shows. */
  open(): Interrupt[];
}

export function followAsked(
  { deferredCalls }: Pick<Stores, "deferredCalls">,
  { owner, threadId: thread_id, id: run_id, lineage, state }: RunInput,
): Asked {
  // Somebody waits for the child and shows its questions as its own: that thread is gone on with.
  const isShownHere = lineage?.parent.background ?? true;
  const known = new Map(openInterrupts(state).map((each) => [each.id, each]));
  const shown = new Map<string, Interrupt>();

  /** A call may have several questions, of several subagents: the first expiry counts. */
  async function note(call_id: string): Promise<void> {
    if (!isShownHere) return;
    const [expires_at] = [...known.values()]
      .flatMap((each) => (each.call_id === call_id && each.expires_at ? [each.expires_at] : []))
      .sort();
    const key = { owner, thread_id, call_id };
    if (expires_at === undefined) return deferredCalls.forget(key);
    const token_hash = tokenHash(randomId());
    try {
      await deferredCalls.open({ ...key, run_id, tool: EXPIRY, token_hash, expires_at });
      await deferredCalls.accept(key);
    } catch (error) {
      // The others wake the thread as well; who goes on with it asks what is still open anew, and finds room for it.
      if (!hasCode(error, "limit_exceeded")) throw error;
    }
  }

  return {
    async before(event) {
      const { id } = event.data;
      const before = known.get(id);
      if (event.event === "on_interrupt") {
        known.set(id, event.data);
        shown.set(id, event.data);
      } else {
        known.delete(id);
        shown.delete(id);
      }
      const { call_id, expires_at } = known.get(id) ?? before ?? {};
      if (call_id !== undefined && expires_at !== undefined) await note(call_id);
    },
    open: () => (isShownHere ? [...shown.values()] : []),
  };
}

// What a thread gets in place of a result that comes from outside, when it does not wait for it: the result itself, if it
// was delivered before, else a stand-in. The store decides which of the two came first.

export interface StandInServices {
  readonly store: DeferredCallStore;
  readonly thread: { readonly owner: Owner; readonly thread_id: string };
  /** Called with the call as it is in the store, before its answer is in the thread. */
  onAnswer?(call: DeferredCall): void;
}

/** For one thread, on behalf of the run that is active on it. Throws what the store throws. */
export function standIns({ store, thread, onAnswer }: StandInServices): StandIn {
  return async (call, { isGivenUp }) => {
    const key: CallKey = { ...thread, call_id: call.id };
    const before = await store.get(key);
    if (!before || before.tool !== call.name) return undefined;
    const now = await (isGivenUp ? store.close(key) : store.leave(key));
    if (now) onAnswer?.(now);
    if (now?.state === "delivered") return boundedResult(now.reply);
    return isGivenUp && !(now && hasResult(now.state)) ? givenUp(before) : pending(before);
  };
}

function pending({ state, tool, expires_at }: DeferredCall): DoneResult {
  if (state === "sent")
    return failed(`${OUTCOME_UNKNOWN} If its result is still delivered, it comes as a message of its own.`);
  return done(
    `Pending: the server of \`${tool}\` has accepted this call and delivers its result later, by ${expires_at}. \
The result comes as a message of its own; the conversation continues without it. Do not repeat the call.`,
  );
}

function givenUp({ state }: DeferredCall): DoneResult {
  if (state === "sent") return failed(OUTCOME_UNKNOWN);
  return failed(
    "Cancelled: the tool's server had accepted this call and may carry it out; its result is no longer taken.",
  );
}
