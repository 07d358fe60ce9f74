// The facts that the check of a store reads: outlines of threads without their texts, and data beside threads. Each store fills
// these in; rules.ts judges them.

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
  /** Numbers that the store keeps. Undefined: it keeps no such count. */
  readonly counted: { readonly messages: number; readonly bytes: number | undefined };
  readonly messages: MessagesOutline;
  /** The run that a process may write; `last`: the number of its last entry, where the store keeps it apart from the log. */
  readonly active: { readonly run: string; readonly last: number | undefined } | undefined;
  /** The runs that wait, the next one first. */
  readonly queue: readonly string[];
  readonly runs: readonly RunFacts[];
  readonly calls: readonly CallFacts[];
  /** The runs for which messages were left. */
  readonly inbox: readonly string[];
  readonly questions: readonly Question[];
  /** True if the owner's list has the thread, and the list of owners the owner. */
  readonly isListed: boolean;
  /** True if a process that looks for work finds the thread: for its runs, for its deferred calls. */
  readonly isFound: { readonly runs: boolean; readonly calls: boolean };
  /** When it changed last, in ms since 1970. */
  readonly updatedAt: number;
}

export interface RunFacts {
  readonly id: string;
  readonly status: RunStatus;
  readonly hasRequest: boolean;
  /** The number of the last entry as the run's end has it. */
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

/** An open interrupt. `wasAsked`: undefined when the log of its run is no longer complete. */
export interface Question {
  readonly id: string;
  readonly run: string;
  readonly wasAsked: boolean | undefined;
}

/** A document that is due. */
export interface DueDocument {
  readonly collection: string;
  readonly key: string;
  /** In ms since 1970. */
  readonly due: number;
  readonly exists: boolean;
  /** Whether a process that looks for due documents finds it, where there is one. */
  readonly isFound: boolean;
}

/** Until when the turn of a tenant may come after its document is due: those who pick documents hold them for less, in ms. */
export const TURN_MS = 3_600_000;

/** Whether a turn that comes at `turn` finds what is due at `due`; without a turn nothing does. */
export const isInTurn = (due: number, turn: number | null, now: number): boolean =>
  turn !== null && turn <= Math.max(due, now) + TURN_MS;

/** The bytes that a tenant or a user has stored, as the store has added them up, and as its rows do. */
export interface Sum {
  readonly name: string;
  readonly recorded: number;
  readonly counted: number;
}

/** The facts that a store provides. It only reads, in pages. Every method may throw what the store throws. */
export interface Inspection {
  /** True if all facts are of one moment. Otherwise a finding is read again before it is reported. */
  readonly isOfOneMoment: boolean;
  /** The names of all threads, in pages. One may come twice. */
  threads(): AsyncIterable<readonly string[]>;
  /** Undefined: there is no such thread any more. */
  thread(name: string): Promise<ThreadFacts | undefined>;
  /** Damage that the database itself reports, and rows whose threads do not exist. */
  remains(): AsyncIterable<string>;
  /** True if such damage still exists. */
  remain(text: string): Promise<boolean>;
  /** Documents that were due at `time`, that are not there or that no process finds, in pages. */
  due(time: number): AsyncIterable<readonly DueDocument[]>;
  sums(): AsyncIterable<readonly Sum[]>;
  close(): Promise<void>;
}
