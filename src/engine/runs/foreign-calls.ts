// Open calls that a thread did not make itself. They come from the thread that a fork copied, or from imported or
// appended messages. They may have run elsewhere, so the model must not be told that they did not run.

import type { DeferredCallStore } from "../../agent/core/deferred-calls.ts";
import { type Message, unknownTo } from "../../agent/core/message.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { StandIn } from "../../agent/core/run.ts";
import type { Claim } from "../../agent/core/stores.ts";
import { done, failed } from "../../agent/core/tool.ts";

/**
 * Returns the thread's `open` calls that were made elsewhere. A run of this thread leaves a call open only if
 * `isAwaited`, or if it was made together with such a call. A run that another process takes over may have made calls
 * if its input is in the thread.
 */
export function foreignCalls(
  { run, request }: Pick<Claim, "run" | "request">,
  { messages, open }: { readonly messages: readonly Message[]; readonly open: readonly string[] },
  isAwaited: (id: string) => boolean,
): ReadonlySet<string> {
  if (open.length === 0) return new Set();
  const isBegun = run.attempt > 1 && unknownTo(messages, request.input).length === 0;
  const isOwn = isBegun || run.resumes !== undefined || open.some(isAwaited);
  return new Set(isOwn ? [] : open);
}

export interface Origin {
  readonly store: Pick<DeferredCallStore, "get">;
  readonly owner: Claim["lease"]["owner"];
  readonly thread: Pick<Thread, "forked_from"> | undefined;
}

/** Calls `standIn` first, which has the results that this thread waits for, and then checks the foreign calls. */
export function withForeign(standIn: StandIn, foreign: ReadonlySet<string>, origin: Origin): StandIn {
  if (foreign.size === 0) return standIn;
  const { store, owner, thread } = origin;
  const source = thread?.forked_from?.thread_id;
  return async (call, how) => {
    const own = await standIn(call, how);
    if (own || !foreign.has(call.id)) return own;
    if (source === undefined) return failed(MADE_ELSEWHERE);
    const there = await store.get({ owner, thread_id: source, call_id: call.id });
    const isPending = there?.tool === call.name && there.state !== "sent";
    return isPending ? done(PENDING_THERE) : failed(MADE_THERE);
  };
}

const MADE_THERE =
  "Outcome unknown: this call was made in the thread that this one was forked from, and its result was not copied. It may have taken effect, or still be running there; check before repeating it.";
const PENDING_THERE =
  "Pending in the thread that this one was forked from: the tool's server has accepted this call, and its result is delivered there, not here. Do not repeat the call.";
const MADE_ELSEWHERE =
  "Outcome unknown: this call was made before its messages were added to this thread. It may have taken effect; check before repeating it.";
