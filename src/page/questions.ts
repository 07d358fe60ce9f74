// The open questions in all of the user's threads.

import type { Answer, OpenInterrupt } from "../client/client.ts";
import { keepRead, type ListRefresh } from "./changes.ts";
import { touch } from "./frame.ts";
import { client, messageOf } from "./session.ts";
import { t } from "./texts.ts";

export interface Questions {
  /** Grouped by thread, starting with the most recent change. */
  items: readonly OpenInterrupt[];
  /** True if there are more questions than the page reads. */
  isCut: boolean;
  isRead: boolean;
  problem?: string | undefined;
  /** A message about a question that disappeared without an answer from this tab. */
  notice: string;
}

export const questions: Questions = { items: [], isCut: false, isRead: false, notice: "" };

/** The questions that the user postponed in this tab. They are shown as a count on one line. */
export const later = { keys: new Set<string>() };

/** Returns a key for a question that is unique among all threads. */
export const keyOf = (thread: string, { id }: Pick<OpenInterrupt, "id">) => `${thread} ${id}`;

export function answerLater(key: string): void {
  later.keys.add(key);
  touch(later);
}
export function answerNow(key: string): void {
  later.keys.delete(key);
  touch(later);
}

const PAGE = 100;
/** The maximum number of requests per read. */
const PAGES = 5;

let kept: ListRefresh | undefined;

/** Keeps `questions` up to date. Returns a function that stops the updates. */
export function followQuestions(): () => void {
  kept = keepRead(({ event }) => CONCERNS.has(event), read);
  return kept.end;
}

/**
 * Answers the questions of a run. The run continues, but this function does not follow it. Throws the same errors as
 * `client.answer`.
 */
export async function sendAnswers(thread: string, run: string, answers: readonly Answer[]): Promise<void> {
  try {
    await client.answer(thread, run, answers);
    // Another run asks the unanswered questions again.
    questions.items = questions.items.filter((each) => each.thread_id !== thread || each.run_id !== run);
    questions.notice = "";
    touch(questions);
  } finally {
    kept?.readNow();
  }
}

const CONCERNS: ReadonlySet<string> = new Set([
  "interrupt_opened",
  "interrupt_closed",
  "run_ended",
  "thread_changed",
]);

async function read(signal: AbortSignal): Promise<void> {
  try {
    const items: OpenInterrupt[] = [];
    let cursor: string | undefined;
    for (let count = 0; count < PAGES; count++) {
      const page = await client.openInterrupts({ limit: PAGE, ...(cursor ? { cursor } : {}) }, signal);
      items.push(...page.items);
      cursor = page.next_cursor;
      if (cursor === undefined) break;
    }
    const isCut = cursor !== undefined;
    const open = new Set(items.map((each) => keyOf(each.thread_id, each)));
    const gone = questions.items.filter((each) => !open.has(keyOf(each.thread_id, each)));
    if (gone.length > 0 && !isCut) questions.notice = t().inbox.gone(gone.length);
    for (const key of later.keys) if (!open.has(key)) later.keys.delete(key);
    Object.assign(questions, { items, isCut, isRead: true, problem: undefined });
  } catch (error) {
    if (signal.aborted) return;
    questions.problem = messageOf(error);
  }
  touch(questions);
}
