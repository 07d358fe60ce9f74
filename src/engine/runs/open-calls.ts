// Prepares the open calls of a thread for its next run: decides which of them may have started, and provides results
// for calls that cannot run.

import type { DeferredCall } from "../../agent/core/deferred-calls.ts";
import { type Message, unanswered } from "../../agent/core/message.ts";
import { openInterrupts } from "../../agent/core/open-interrupts.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { StandIn } from "../../agent/core/run.ts";
import type { Claim, Lease, Stores } from "../../agent/core/stores.ts";
import { EXPIRY, standIns } from "./deferred.ts";
import { foreignCalls, withForeign } from "./foreign-calls.ts";
import type { PreviousAttempt } from "./previous-attempt.ts";
import { restoredCalls, withRestored } from "./restored-calls.ts";
import type { RunObserver, RunServices } from "./services.ts";

export interface OpenCalls {
  /** The calls that may have started. They are not run again unless their tools allow it. */
  readonly begun: ReadonlySet<string>;
  readonly standIn: StandIn;
  /** Removes deferred calls once their results are in the thread. */
  readonly deferredResults: RunObserver;
}

/** The content of the thread when the run begins. */
interface Before {
  readonly messages: readonly Message[];
  readonly state: ReadonlyMap<string, unknown>;
  readonly thread: Thread | undefined;
}

export async function openCalls(
  claim: Claim,
  { stores, restoration }: Pick<RunServices, "stores" | "restoration">,
  { begun, isWhole }: Pick<PreviousAttempt, "begun" | "isWhole">,
  { messages, state, thread }: Before,
): Promise<OpenCalls> {
  const { lease, request } = claim;
  const { owner, thread_id } = lease;
  const { deferredCalls: store } = stores;
  const open = unanswered(messages).map(({ id }) => id);
  const deferred = await deferredCalls(stores, lease, open);
  const ofBackup = restoredCalls(restoration, { messages, open });
  const asked = new Set(openInterrupts(state).map(({ call_id }) => call_id));
  const foreign = foreignCalls(claim, { messages, open }, (id) => deferred.has(id) || asked.has(id));
  // A call recorded only so that its question can expire counts as started once the question has been answered.
  const isPending = (id: string) => deferred.has(id) && (deferred.get(id) !== EXPIRY || asked.has(id));
  // If the log is incomplete, any open call may have started. The same applies to a foreign call, and to a restored
  // call unless a person is asked about that call again. The id of an ended call may be reused.
  const mayHaveStarted = (id: string) =>
    !isWhole || begun.includes(id) || foreign.has(id) || (ofBackup.has(id) && !asked.has(id));
  // The outcome of a restored call without a result is unknown.
  const restored = request.restores === undefined ? [] : unanswered(request.input).map(({ id }) => id);

  /** The deferred calls to remove once their results are in the thread. */
  const settled = new Set(deferred.keys());
  const standIn = standIns({
    store,
    thread: { owner, thread_id },
    onAnswer({ call_id, state }) {
      if (state === "delivered") settled.add(call_id);
      else settled.delete(call_id);
    },
  });
  return {
    begun: new Set([...open.filter((id) => !isPending(id) && mayHaveStarted(id)), ...restored]),
    standIn: withRestored(withForeign(standIn, foreign, { store, owner, thread }), ofBackup, restoration),
    deferredResults: {
      afterWrite(event) {
        if (event.event !== "on_message" || event.data.message.role !== "tool") return undefined;
        const { tool_call_id: call_id } = event.data.message;
        if (!settled.has(call_id)) return undefined;
        // If this fails, the call is removed when it becomes due.
        return store.forget({ owner, thread_id, call_id }).catch(() => {});
      },
    },
  };
}

const isWaitedFor = ({ state }: DeferredCall) => state === "accepted" || state === "delivered";

/** Returns the calls that have a deferred or delivered result, with their tools. They are not started again. */
async function deferredCalls(
  { deferredCalls }: Stores,
  { owner, thread_id }: Lease,
  calls: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found = await Promise.all(calls.map((call_id) => deferredCalls.get({ owner, thread_id, call_id })));
  return new Map(found.flatMap((call) => (call && isWaitedFor(call) ? [[call.call_id, call.tool]] : [])));
}
