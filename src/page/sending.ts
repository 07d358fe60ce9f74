// Sends the user's message: as a new run, to the run in progress, or into the queue after it.

import { type Part, ProblemError, type Run, type RunOptions } from "../client/client.ts";
import { type OutgoingMessage, outgoingOf, type RunChoice, randomId, saveOutgoing } from "./outbox.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

export type MessageContent = string | Part[];

/** Returns undefined if there is nothing to send. */
export function contentOf(text: string, attachments: readonly Part[]): MessageContent | undefined {
  if (text.trim() === "" && attachments.length === 0) return undefined;
  if (attachments.length === 0) return text;
  return [...(text.trim() === "" ? [] : [{ type: "text" as const, text }]), ...attachments];
}

export interface NewRun {
  /** Undefined for a new conversation. */
  readonly thread: string | undefined;
  readonly content: MessageContent;
  readonly choice: RunChoice;
  /** The id of the message that this one replaces. */
  readonly replaces?: string | undefined;
  readonly isQueued: boolean;
  /** The id of a queued run to replace. That run must not have started. */
  readonly instead?: string | undefined;
}

/** Returns the accepted run and its thread. Throws `ProblemError` if the server refuses. */
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

/** Returns the message that was being sent when the page was closed, or undefined. */
export const unfinished = (thread: string | undefined): OutgoingMessage | undefined => outgoingOf(thread);

/** Retries the request until the server responds. The idempotency key prevents a second run. */
export async function deliver(place: string | undefined, outgoing: OutgoingMessage): Promise<Run> {
  saveOutgoing(place, outgoing);
  const { thread, key, run, instead } = outgoing;
  try {
    if (instead !== undefined && !(await isWithdrawn(thread, instead))) throw new Error(t().statusLine.begun);
    return await client.start(thread, run, { idempotencyKey: key });
  } finally {
    if (!isLeaving) saveOutgoing(place, undefined);
  }
}

/** Cancels a queued run. Returns whether the run ended without having started. */
export async function isWithdrawn(thread: string, id: string): Promise<boolean> {
  try {
    await client.stop(thread, id, "cancel");
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === "run_not_active")) throw error;
  }
  return (await client.runs.get(thread, id)).status === "cancelled";
}

/**
 * True while the page unloads. The stored message is then kept, so that the reloaded page sends it again and opens the
 * run.
 */
let isLeaving = false;
const LEAVING_MS = 5_000;
addEventListener("beforeunload", () => {
  isLeaving = true;
  // Some links fire `beforeunload` although the page stays open.
  setTimeout(() => {
    isLeaving = false;
  }, LEAVING_MS);
});

/** Returns the id of the message, or undefined if the run has ended. */
export async function steer(
  thread: string,
  run: string,
  content: MessageContent,
): Promise<string | undefined> {
  try {
    return (await client.steer(thread, run, content)).message_id;
  } catch (error) {
    if (error instanceof ProblemError && error.code === "run_not_active") return undefined;
    throw error;
  }
}
