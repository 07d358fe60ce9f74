// Threads and runs as they are stored in memory.

import type { DeferredCall } from "../../../agent/core/deferred-calls.ts";
import type { ListedDocument } from "../../../agent/core/documents.ts";
import type { Shelf } from "../../../agent/core/items.ts";
import type { Message, UserMessage } from "../../../agent/core/message.ts";
import type { RunRecord, RunRequest, Thread } from "../../../agent/core/records.ts";
import type { NewRun } from "../../../agent/core/stores.ts";
import { jsonCopy } from "../../../lib/json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Log } from "../log.ts";
import type { ThreadHead } from "../thread-head.ts";

/** The approximate size in bytes of a thread in addition to its content. */
export const THREAD_BYTES = 600;

export interface Slot {
  readonly value: unknown;
  readonly bytes: number;
}

export interface ThreadEntry {
  readonly owner: Owner;
  readonly id: string;
  readonly createdAt: number;
  readonly parent: Thread["parent"];
  readonly forkedFrom: Thread["forked_from"];
  agent: string | undefined;
  title: string | undefined;
  metadata: Thread["metadata"];
  /** The thread's status when no run is active or waiting. */
  outcome: Exclude<Thread["status"], "busy">;
  updatedAt: number;
  /** The time of the last read or write. */
  usedAt: number;
  /** The messages. Each message is frozen. */
  messages: Message[];
  /** The ids of `messages`, once they have been requested. */
  ids: Set<string> | undefined;
  state: Map<string, Slot> | undefined;
  /** The runs, oldest first. */
  runs: RunEntry[];
  head: ThreadHead;
  /** True if a process can write the active run. */
  isHeld: boolean;
  /** The number of its runs that have ever begun. */
  begunCount: number;
  /** Deferred calls by id. They are never compressed. */
  deferred: Map<string, DeferredEntry> | undefined;
  /** The thread's documents, which are never compressed. */
  collections: Map<Shelf["kind"], Items> | undefined;
  messageCount: number;
  /** The size of the messages in bytes as JSON, even while compressed. */
  messageBytes: number;
  /** The current size in bytes, and the size of the messages and state when uncompressed. */
  bytes: number;
  contentBytes: number;
  /** Replaces `messages`, `state` and `runs` while compressed. `bytes` is the thread's size without it. */
  compressed: { readonly text: string; readonly bytes: number } | undefined;
}

/** The values that only an unfinished run needs. */
export interface Work {
  readonly request: RunRequest;
  readonly requestBytes: number;
  /** Empty when the run has ended, because unread messages are added to the thread. */
  inbox: UserMessage[];
}

export interface RunEntry {
  readonly thread: ThreadEntry;
  readonly id: string;
  readonly agent: string;
  readonly metadata: NewRun["metadata"];
  readonly key: string | undefined;
  readonly resumes: string | undefined;
  readonly createdAt: number;
  status: RunRecord["status"];
  attempt: number;
  /** 1, 2, 3 and so on, in the order in which the thread's runs began. Absent before the run begins. */
  begun: number | undefined;
  usage: RunRecord["usage"];
  stopReason: string | undefined;
  details: RunRecord["details"];
  error: RunRecord["error"];
  endedAt: number | undefined;
  work: Work | undefined;
  /** Removed some time after the run has ended. `lastSeq` remains. */
  log: Log | undefined;
  lastSeq: number;
}

export interface DeferredEntry {
  readonly thread: ThreadEntry;
  readonly call: DeferredCall;
  readonly bytes: number;
  /** The time at which the call must be checked, if any. */
  dueAt: number | undefined;
}

export interface DocumentEntry extends ListedDocument {
  /** The time at which the document is due. Infinity means never. */
  readonly due: number;
  readonly bytes: number;
}

/** The documents of one collection, by key. */
export type Items = Map<string, DocumentEntry>;

/** A run that has not ended. */
export type LiveRun = RunEntry & { readonly work: Work; readonly log: Log };

export function isLive(run: RunEntry): run is LiveRun {
  return run.work !== undefined && run.log !== undefined;
}

export const isBusy = ({ head }: ThreadEntry) => head.active !== undefined || head.queue.length > 0;

export function toRecord(run: RunEntry): RunRecord {
  const { id, agent, status, attempt, resumes, stopReason, error, details, usage, metadata, endedAt } = run;
  return {
    id,
    thread_id: run.thread.id,
    agent,
    status,
    attempt,
    ...(resumes === undefined ? {} : { resumes }),
    ...(stopReason === undefined ? {} : { stop_reason: stopReason }),
    ...(error === undefined ? {} : { error: jsonCopy(error) }),
    ...(details === undefined ? {} : { details: jsonCopy(details) }),
    usage: { ...usage },
    metadata: { ...metadata },
    created_at: new Date(run.createdAt).toISOString(),
    ...(endedAt === undefined ? {} : { ended_at: new Date(endedAt).toISOString() }),
  };
}

/** Returns the size of a thread's documents in bytes. */
export function collectionBytes({ collections }: ThreadEntry): number {
  let bytes = 0;
  for (const items of collections?.values() ?? []) bytes += weightOf(items);
  return bytes;
}

export function weightOf(items: Items): number {
  let bytes = 0;
  for (const entry of items.values()) bytes += entry.bytes;
  return bytes;
}

export const runOf = (thread: ThreadEntry, id: string): RunEntry | undefined =>
  thread.runs.findLast((run) => run.id === id);
