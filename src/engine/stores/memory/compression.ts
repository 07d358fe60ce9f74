// Compresses the content of idle threads into one text.

import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { LogEntry } from "../../../agent/core/stores.ts";
import { deepFreeze } from "../../../lib/json.ts";
import { Log } from "../log.ts";
import type { RunEntry, Slot, ThreadEntry } from "./records.ts";

/**
 * The first line of a compressed text. The events of all runs follow, one per line, because JSON contains no line
 * breaks.
 */
interface Head {
  readonly messages: ThreadEntry["messages"];
  readonly state: [string, Slot][];
  readonly runs: CompressedRun[];
}

interface CompressedRun {
  readonly run: Omit<RunEntry, "thread" | "work" | "log">;
  /** The epoch and the event name of each entry. Absent if the entries were dropped. */
  readonly marks?: Pick<LogEntry, "epoch" | "event">[];
}

/** Returns the content of `thread` as one text and changes nothing. No run may be active or waiting on the thread. */
export function compress({ messages, state, runs }: ThreadEntry): string {
  const head: Head = { messages, state: [...(state ?? [])], runs: runs.map(compressRun) };
  const events = runs.flatMap(({ log }) => log?.entries.map(({ json }) => json) ?? []);
  const text = [JSON.stringify(head), ...events].join("\n");
  // A string takes less memory than a buffer and its objects.
  return deflateRawSync(text, { level: 1 }).toString("latin1");
}

/** Restores the compressed content to `thread`. Its logs keep `keep` entries. */
export function uncompress(thread: ThreadEntry, compressed: string, keep: number): void {
  const [first = "", ...events] = inflateRawSync(Buffer.from(compressed, "latin1")).toString().split("\n");
  // Not validated, because it was written by `compress`.
  const head = JSON.parse(first) as Head;
  for (const message of head.messages) deepFreeze(message);
  thread.messages = head.messages;
  thread.state = head.state.length === 0 ? undefined : new Map(head.state);
  let next = 0;
  thread.runs = head.runs.map(({ run, marks }) => {
    const texts = events.slice(next, next + (marks?.length ?? 0));
    next += texts.length;
    const log = marks && uncompressLog(marks, texts, run.lastSeq, keep);
    return { ...ABSENT, ...run, thread, work: undefined, log };
  });
}

/** The fields that JSON omits. */
const ABSENT = {
  key: undefined,
  resumes: undefined,
  begun: undefined,
  stopReason: undefined,
  details: undefined,
  error: undefined,
  endedAt: undefined,
};

function compressRun({ thread: _, work: __, log, ...run }: RunEntry): CompressedRun {
  return log ? { run, marks: log.entries.map(({ epoch, event }) => ({ epoch, event })) } : { run };
}

function uncompressLog(
  marks: readonly Pick<LogEntry, "epoch" | "event">[],
  texts: readonly string[],
  last: number,
  keep: number,
): Log {
  const before = last - marks.length;
  const log = new Log(keep, before);
  for (const [index, mark] of marks.entries())
    log.push({ ...mark, seq: before + index + 1, json: texts[index] ?? "" });
  return log.end();
}
