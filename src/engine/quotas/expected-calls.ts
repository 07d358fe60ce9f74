// Estimates from earlier calls what the first model call of a run takes at least. A run that could not call its model even once is
// refused before it is accepted. Each process keeps its own estimates, for a while.

import { LRUCache } from "lru-cache";
import type { Owner } from "../../protocol/ids.ts";

/** A prompt that has become shorter meanwhile is believed after this, in ms. */
const KEPT_MS = 10 * 60_000;
const MAX_KEPT = 10_000;

/** Who asks a model. */
export interface Caller {
  readonly agent: string;
  readonly threadId: string;
}

/** The tokens of a model call. */
export interface ReservedCall {
  readonly model: string;
  readonly input: number;
  /** The part of the input that is not messages. */
  readonly fixed: number;
  /** The shortest answer that is of use. */
  readonly least: number;
}

/** A run that is to be accepted. */
export interface ExpectedRun extends Caller {
  /** The model that its request names; undefined: the agent's. */
  readonly model: string | undefined;
  /** Tokens of its new messages. Called only where there are budgets. */
  size(): number;
  /** It begins at an earlier message of its thread. */
  readonly isRewound: boolean;
}

export function expectedCalls() {
  const kept = new LRUCache<string, ReservedCall>({ max: MAX_KEPT, ttl: KEPT_MS });
  const keys = ({ tenant, user }: Owner, { agent, threadId }: Caller) =>
    [
      [tenant, user, "agent", agent],
      [tenant, user, "thread", threadId],
    ].map((names) => JSON.stringify(names)) as [ofAgent: string, ofThread: string];

  return {
    note(owner: Owner, caller: Caller, taken: ReservedCall): void {
      const [ofAgent, ofThread] = keys(owner, caller);
      const before = kept.get(ofAgent);
      const fixed = before?.model === taken.model ? Math.min(before.fixed, taken.fixed) : taken.fixed;
      kept.set(ofAgent, { ...taken, fixed, input: fixed });
      // Its next call reads what this one did, and more.
      kept.set(ofThread, taken);
    },

    /** Undefined where nothing is known of such a run. */
    of(owner: Owner, run: ExpectedRun): ReservedCall | undefined {
      const found = keys(owner, run).map((key) => kept.get(key));
      const [ofAgent, ofThread] = run.isRewound ? [found[0]] : found;
      const known = ofThread ?? ofAgent;
      if (!known || (run.model ?? known.model) !== known.model) return undefined;
      return { ...known, input: known.input + run.size() };
    },
  };
}
