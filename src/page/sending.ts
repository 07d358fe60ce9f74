// Sends what a person has written: as a run of its own, to the run in progress, or to be run after it.

import { type Part, ProblemError, type Run, type RunOptions } from "../client/client.ts";
import { type Choice, type Outgoing, outgoingOf, randomId, saveOutgoing } from "./outbox.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

export type Content = string | Part[];

/** Undefined when there is nothing to send. */
export function contentOf(text: string, attachments: readonly Part[]): Content | undefined {
  if (text.trim() === "" && attachments.length === 0) return undefined;
  if (attachments.length === 0) return text;
  return [...(text.trim() === "" ? [] : [{ type: "text" as const, text }]), ...attachments];
}

export interface NewRun {
  /** Absent: a new conversation. */
  readonly thread: string | undefined;
  readonly content: Content;
  readonly choice: Choice;
  /** The id of the message that this one replaces. */
  readonly replaces?: string | undefined;
  readonly isQueued: boolean;
  /** The id of a queued run whose place it takes: that one must not have begun. */
  readonly instead?: string | undefined;
}

/** The run that the server has accepted, and its thread. Throws `ProblemError` when the server refuses. */
export async function startRun({
  thread,
  content,
  choice,
  replaces,
  isQueued,
  instead,
}: NewRun): Promise<Run> {
  const { agent, model } = choice;
  const run: RunOptions = {
    messages: [{ role: "user", content }],
    ...(agent ? { agent } : {}),
    ...(model ? { model } : {}),
    ...(replaces ? { replaces } : {}),
    ...(isQueued ? { on_busy: "enqueue" } : {}),
  };
  return deliver(thread, { thread: thread ?? `th_${randomId()}`, key: randomId(), run, instead });
}

/** What was on its way when the page was closed. Undefined: nothing. */
export const unfinished = (thread: string | undefined): Outgoing | undefined => outgoingOf(thread);

/** Repeats the request until the server responds. With the same key it starts nothing twice. */
export async function deliver(place: string | undefined, outgoing: Outgoing): Promise<Run> {
  saveOutgoing(place, outgoing);
  const { thread, key, run, instead } = outgoing;
  try {
    if (instead !== undefined && !(await isWithdrawn(thread, instead))) throw new Error(t().statusLine.begun);
    return await client.start(thread, run, { idempotencyKey: key });
  } finally {
    if (!isLeaving) saveOutgoing(place, undefined);
  }
}

/** Whether a queued run was cancelled, now or before, and did not begin. */
export async function isWithdrawn(thread: string, id: string): Promise<boolean> {
  try {
    await client.stop(thread, id, "cancel");
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === "run_not_active")) throw error;
  }
  return (await client.runs.get(thread, id)).status === "cancelled";
}

/** The page that comes after a reload leads to the run; a reply that arrives while this one is left does not. */
let isLeaving = false;
const LEAVING_MS = 5_000;
addEventListener("beforeunload", () => {
  isLeaving = true;
  // Some links ask a page to leave that then stays.
  setTimeout(() => {
    isLeaving = false;
  }, LEAVING_MS);
});

/** The id of the message, or undefined when the run has ended meanwhile. */
export async function steer(thread: string, run: string, content: Content): Promise<string | undefined> {
  try {
    return (await client.steer(thread, run, content)).message_id;
  } catch (error) {
    if (error instanceof ProblemError && error.code === "run_not_active") return undefined;
    throw error;
  }
}
