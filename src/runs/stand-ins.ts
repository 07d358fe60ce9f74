// What a thread gets in place of a result that comes from outside, when it does not wait for it: the result itself, if it
// was delivered before, else a stand-in. The store decides which of the two came first.

import {
  type CallKey,
  type DeferredCall,
  type DeferredCallStore,
  hasResult,
} from "../core/deferred-calls.ts";
import { boundedResult } from "../core/delivered-result.ts";
import type { Owner } from "../core/ids.ts";
import { OUTCOME_UNKNOWN } from "../core/loop.ts";
import type { StandIn } from "../core/run.ts";
import { type DoneResult, done, failed } from "../core/tool.ts";

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
