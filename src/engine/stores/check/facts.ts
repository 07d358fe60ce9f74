// The facts that the check of a store reads: outlines of threads without their text, and data stored next to threads.
// Each store collects them; rules.ts evaluates them.

import type { CallState } from "../../../agent/core/deferred-calls.ts";
import type { RunStatus, ThreadStatus } from "../../../agent/core/records.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { LogOutline } from "./log-outline.ts";
import type { MessagesOutline } from "./messages-outline.ts";

export interface ThreadFacts {
  readonly owner: Owner;
  readonly id: string;
  /** As clients see it. */
  readonly status: ThreadStatus;
  /** Counters that the store maintains. Undefined: the store has no such counter. */
  readonly counted: { readonly messages: number; readonly bytes: number | undefined };
  readonly messages: MessagesOutline;
  /** The run that a process may write. `last`: number of its last entry, if the store keeps it separately from the log. */
  readonly active: { readonly run: string; readonly last: number | undefined } | undefined;
  /** Waiting runs, the next one first. */
  readonly queue: readonly string[];
  readonly runs: readonly RunFacts[];
  readonly calls: readonly CallFacts[];
  /** Runs with queued messages. */
  readonly inbox: readonly string[];
  readonly questions: readonly Question[];
  /** True if the owner's list contains the thread, and the list of owners contains the owner. */
  readonly isListed: boolean;
  /** True if a process that looks for work finds the thread: for its runs, for its deferred calls. */
  readonly isFound: { readonly runs: boolean; readonly calls: boolean };
  /** Time of the last change in milliseconds since 1970. */
  readonly updatedAt: number;
}

export interface RunFacts {
  readonly id: string;
  readonly status: RunStatus;
  readonly hasRequest: boolean;
  /** Number of the last entry according to the run's end. */
  readonly last: number | undefined;
  /** True if its events must still exist. */
  readonly keepsLog: boolean;
  readonly log: LogOutline;
}

export interface CallFacts {
  readonly id: string;
  readonly run: string;
  readonly state: CallState;
  readonly hasReply: boolean;
}

/** An open interrupt. `wasAsked`: undefined if the log of its run is no longer complete. */
export interface Question {
  readonly id: string;
  readonly run: string;
  readonly wasAsked: boolean | undefined;
}

/** A document that is due. */
export interface DueDocument {
  readonly collection: string;
  readonly key: string;
  /** In milliseconds since 1970. */
  readonly due: number;
  readonly exists: boolean;
  /** True if a process that looks for due documents, if there is one, finds it. */
  readonly isFound: boolean;
}

/** Milliseconds by which a tenant's turn may come after its document is due. Processes hold picked documents for less. */
export const TURN_MS = 3_600_000;

/** True if a turn at `turn` finds a document that is due at `due`. Without a turn, nothing finds it. */
export const isInTurn = (due: number, turn: number | null, now: number): boolean =>
  turn !== null && turn <= Math.max(due, now) + TURN_MS;

/** The bytes that a tenant or a user has stored: the sum that the store maintains, and the sum of its rows. */
export interface Sum {
  readonly name: string;
  readonly recorded: number;
  readonly counted: number;
}

/** The facts that a store provides. It only reads, in pages. Every method may throw the store's errors. */
export interface Inspection {
  /** True if all facts are from the same moment. Otherwise a finding is read again before it is reported. */
  readonly isOfOneMoment: boolean;
  /** Yields the names of all threads, in pages. A name may repeat. */
  threads(): AsyncIterable<readonly string[]>;
  /** Undefined if the thread no longer exists. */
  thread(name: string): Promise<ThreadFacts | undefined>;
  /** Damage that the database itself reports, and rows whose threads do not exist. */
  remains(): AsyncIterable<string>;
  /** True if such damage still exists. */
  remain(text: string): Promise<boolean>;
  /** Yields documents that were due at `time` but do not exist or are found by no process, in pages. */
  due(time: number): AsyncIterable<readonly DueDocument[]>;
  sums(): AsyncIterable<readonly Sum[]>;
  close(): Promise<void>;
}
