// Estimates the minimum cost of a run's first model call from earlier calls. A run that could not afford a single call
// is refused before it is accepted. Each process keeps its own estimates for a limited time.

import { LRUCache } from "lru-cache";
import { atMost } from "../../lib/lru.ts";
import type { Owner } from "../../protocol/ids.ts";

/** The number of milliseconds after which an estimate expires, for example because the prompt has become shorter. */
const KEPT_MS = 10 * 60_000;
const MAX_KEPT = 10_000;

/** The caller of a model. */
export interface Caller {
  readonly agent: string;
  readonly threadId: string;
}

/** The amounts reserved for a model call, in tokens except for `searches`. */
export interface ReservedCall {
  readonly model: string;
  readonly input: number;
  /** The tokens of the input other than messages. */
  readonly fixed: number;
  /** The tokens of the shortest useful answer. */
  readonly least: number;
  /** The minimum number of web searches that the model's provider makes. */
  readonly searches: number;
}

/** A run that is about to be accepted. */
export interface ExpectedRun extends Caller {
  /** The model named by the request. Undefined means the agent's model. */
  readonly model: string | undefined;
  /** Returns the number of tokens in the run's new messages. Called only if there are budgets. */
  size(): number;
  /** True if the run begins at an earlier message of its thread. */
  readonly isRewound: boolean;
}

export function expectedCalls() {
  const kept = new LRUCache<string, ReservedCall>({ ...atMost(MAX_KEPT), ttl: KEPT_MS });
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
      // The next call reads all the input of this one, and more.
      kept.set(ofThread, taken);
    },

    /** Returns undefined if nothing is known about such a run. */
    of(owner: Owner, run: ExpectedRun): ReservedCall | undefined {
      const found = keys(owner, run).map((key) => kept.get(key));
      const [ofAgent, ofThread] = run.isRewound ? [found[0]] : found;
      const known = ofThread ?? ofAgent;
      if (!known || (run.model ?? known.model) !== known.model) return undefined;
      return { ...known, input: known.input + run.size() };
    },
  };
}
