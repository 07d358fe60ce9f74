// Agents that work for other agents. A child is a thread of its own with runs of its own; what it says appears in its
// parent's stream as well. The port is what delegation needs of the engine; every method may be called again.

import type { z } from "zod";
import type { StreamEvent } from "./event.ts";
import type { Owner } from "./ids.ts";
import type { Answer } from "./interrupt.ts";
import type { Message } from "./message.ts";
import type { Lineage, RunRecord } from "./records.ts";

export interface NewChild {
  /** Chosen by whoever delegates, and written down before: a second `begin` finds the first one's. */
  readonly thread_id: string;
  readonly agent: string;
  readonly messages: readonly Message[];
  readonly lineage: Lineage;
}

export interface AgentSummary {
  readonly name: string;
  readonly description?: string;
  readonly prefix?: string;
}

export interface Subagents {
  /** Of those names, the agents that there are; with their descriptions. */
  describe(names: readonly string[]): AgentSummary[];
  /** Creates the child's thread and starts its first run, or returns the newest run of the one that is there. */
  begin(owner: Owner, child: NewChild): Promise<RunRecord>;
  /**
   * Goes on with a child that waits for answers: a new run, or the one that was started with the same `key`. Without
   * answers, with what was decided meanwhile. Throws `interrupt_closed`, `thread_busy`.
   */
  resume(
    owner: Owner,
    child: { readonly run: RunRecord; readonly lineage: Lineage },
    resumption: { readonly answers: readonly z.infer<typeof Answer>[]; readonly key: string },
  ): Promise<RunRecord>;
  /** The newest run that the thread has; nothing when the thread is gone. */
  newest(owner: Owner, threadId: string): Promise<RunRecord | undefined>;
  /**
   * What a run said from its first event on, then what it says, to its last one. A run whose process died is taken up
   * here if nobody else does. Throws `events_expired` when its beginning is kept no longer, `not_found`.
   */
  events(owner: Owner, run: RunRecord, signal: AbortSignal): AsyncGenerator<StreamEvent, void, void>;
  /** The child's thread: its messages, oldest first, and its values. */
  thread(owner: Owner, threadId: string): Promise<{ messages: Message[]; state: Record<string, unknown> }>;
  /** Ends a run; one that has ended is left as it is. */
  stop(owner: Owner, run: RunRecord, mode: "cancel" | "interrupt"): Promise<void>;
}
