// The one place where a run's events are written in memory, together with what they mean.

import type { Message, UserMessage } from "../../core/message.ts";
import {
  type Change,
  changeOf,
  type Draft,
  type Ending,
  endingOf,
  hasEnd,
  type Stamp,
  stamp,
  THREAD_STATUS,
  withLeftovers,
} from "../endings.ts";
import { headAfterEnd } from "../thread-head.ts";
import type { Book } from "./book.ts";
import { addMessage, setSlot, sizeOf } from "./content.ts";
import type { LiveRun, RunEntry } from "./entries.ts";

/** A run's first entries wake its readers one by one; later ones together, once per turn of the event loop. */
const FIRST_ENTRIES = 16;

/**
 * Writes all of `written`, or throws and writes nothing. Throws `unavailable` when there is no room; the end of
 * a run is written always.
 */
export function commit(book: Book, run: LiveRun, written: readonly Draft[]): void {
  const { thread, log, work } = run;
  const { active } = thread.head;
  const epoch = active?.run === run.id ? active.epoch : 1;
  const ends = hasEnd(written);
  if (!ends) book.makeRoom();
  const drafts = ends ? withLeftovers(written, work.inbox, stampOf(book, run)) : written;

  const before = log.bytes;
  for (const { event, json } of drafts) log.push({ epoch, seq: log.last + 1, event: event.event, json });
  book.weigh(thread, log.bytes - before);
  for (const draft of drafts) apply(book, run, changeOf(draft));

  if (ends || log.last <= FIRST_ENTRIES) log.ring();
  else log.ringSoon();
}

function stampOf(book: Book, { id, thread }: RunEntry): Stamp {
  return stamp({ run_id: id, thread_id: thread.id }, book.limits.now());
}

function apply(book: Book, run: LiveRun, change: Change | undefined): void {
  if (!change) return;
  run.thread.updatedAt = book.limits.now();
  if (change.event === "on_message") takeIn(book, run, change.data.message);
  else if (change.event === "on_state") setSlot(book, run.thread, change.data);
  else settle(book, run, endingOf(change));
}

/** Out of the inbox, if it waited there, and into the thread. */
function takeIn(book: Book, run: LiveRun, message: Message): void {
  const { inbox } = run.work;
  if (inbox.some((left) => left.id === message.id))
    setInbox(
      book,
      run,
      inbox.filter((left) => left.id !== message.id),
    );
  addMessage(book, run.thread, message);
}

export function setInbox(book: Book, { thread, work }: LiveRun, inbox: UserMessage[]): void {
  book.weigh(thread, sizeOf(inbox) - sizeOf(work.inbox));
  work.inbox = inbox;
}

function settle(book: Book, run: LiveRun, ending: Ending): void {
  const { thread, log, work } = run;
  const entry: RunEntry = run;
  entry.status = ending.status;
  entry.usage = ending.usage;
  entry.stopReason = ending.stop_reason;
  entry.error = ending.error;
  entry.endedAt = book.limits.now();
  entry.lastSeq = log.last;
  entry.work = undefined;
  book.weigh(thread, -work.requestBytes);
  book.retain(run);
  if (thread.head.active?.run === run.id) {
    thread.head = headAfterEnd(thread.head);
    thread.ids = undefined;
    thread.outcome = THREAD_STATUS[ending.status];
  }
  book.touch(thread);
  if (thread.head.queue.length > 0 && !thread.head.active) book.calls.say({ call: "waiting" });
  log.end();
}
