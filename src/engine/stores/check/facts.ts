// The facts that the check of a store reads: outlines of threads without their text, and data stored next to threads.
// Each store collects these facts, and rules.ts evaluates them.

import type { CallState } from "../../../agent/core/deferred-calls.ts";
import type { RunStatus, ThreadStatus } from "../../../agent/core/records.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { LogOutline } from "./log-outline.ts";
import type { MessagesOutline } from "./messages-outline.ts";

export interface ThreadFacts {
  readonly owner: Owner;
  readonly id: string;
  /** The status that clients see. */
  readonly status: ThreadStatus;
  /** The counters that the store maintains, or undefined if it does not have them. */
  readonly counted: { readonly messages: number; readonly bytes: number | undefined };
  readonly messages: MessagesOutline;
  /**
   * The run that a process can write. `last` is the number of its last entry, if the store keeps it separately from the
   * log.
   */
  readonly active: { readonly run: string; readonly last: number | undefined } | undefined;
  /** The waiting runs, starting with the next one. */
  readonly queue: readonly string[];
  readonly runs: readonly RunFacts[];
  readonly calls: readonly CallFacts[];
  /** Runs with queued messages. */
  readonly inbox: readonly string[];
  readonly questions: readonly Question[];
  /** True if the owner's list contains the thread, and the list of owners contains the owner. */
  readonly isListed: boolean;
  /** True if a process that looks for work finds the thread, once for its runs and once for its deferred calls. */
  readonly isFound: { readonly runs: boolean; readonly calls: boolean };
  /** The time of the last change in milliseconds since 1970. */
  readonly updatedAt: number;
}

export interface RunFacts {
  readonly id: string;
  readonly status: RunStatus;
  readonly hasRequest: boolean;
  /** The number of the last log entry, as recorded when the run ended. */
  readonly last: number | undefined;
  /** True if the run's events must still be stored. */
  readonly keepsLog: boolean;
  readonly log: LogOutline;
}

export interface CallFacts {
  readonly id: string;
  readonly run: string;
  readonly state: CallState;
  readonly hasReply: boolean;
}

/** An open interrupt. `wasAsked` is undefined if the log of its run is no longer complete. */
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
  /** True if a process that looks for due documents finds this one. */
  readonly isFound: boolean;
}

/**
 * The maximum delay between a document's due time and its tenant's turn, in milliseconds. Processes hold picked
 * documents for less than this.
 */
export const TURN_MS = 3_600_000;

/**
 * Returns true if a turn at `turn` finds a document that is due at `due`. If `turn` is null, no turn finds the
 * document.
 */
export const isInTurn = (due: number, turn: number | null, now: number): boolean =>
  turn !== null && turn <= Math.max(due, now) + TURN_MS;

/**
 * The bytes that a tenant or a user has stored, both as the sum that the store maintains and as the sum of its rows.
 */
export interface Sum {
  readonly name: string;
  readonly recorded: number;
  readonly counted: number;
}

/** The facts that a store provides. All methods only read, page by page. Every method can throw the store's errors. */
export interface Inspection {
  /**
   * True if all facts are from the same moment. Otherwise, the facts behind a finding are read again before the finding
   * is reported.
   */
  readonly isOfOneMoment: boolean;
  /** Yields the names of all threads, page by page. A name can occur more than once. */
  threads(): AsyncIterable<readonly string[]>;
  /** Undefined if the thread no longer exists. */
  thread(name: string): Promise<ThreadFacts | undefined>;
  /** Yields damage that the database itself reports, and rows whose threads do not exist. */
  remains(): AsyncIterable<string>;
  /** Returns true if such damage still exists. */
  remain(text: string): Promise<boolean>;
  /** Yields documents that were due at `time` but do not exist or cannot be found by any process, page by page. */
  due(time: number): AsyncIterable<readonly DueDocument[]>;
  sums(): AsyncIterable<readonly Sum[]>;
  close(): Promise<void>;
}
