// Messages that are being sent. After a reload, they are sent again with the same key, so each message starts only one
// run.

import type { RunOptions } from "../client/client.ts";

export interface OutgoingMessage {
  readonly thread: string;
  readonly key: string;
  readonly run: RunOptions;
  /** The id of a queued run to replace. */
  readonly instead?: string | undefined;
}

const NEW = "new";
const outgoingKey = (thread: string | undefined) => `skein.sending.${thread ?? NEW}`;
const choiceKey = (thread: string | undefined) => `skein.choice.${thread ?? NEW}`;

export const outgoingOf = (thread: string | undefined): OutgoingMessage | undefined =>
  parsed<OutgoingMessage>(outgoingKey(thread));

/**
 * Stores the message. A message with large attachments may not fit into the storage. It is then not sent again after a
 * reload.
 */
export function saveOutgoing(thread: string | undefined, outgoing: OutgoingMessage | undefined): void {
  save(outgoingKey(thread), outgoing && JSON.stringify(outgoing));
}

const queuedKey = (run: string) => `skein.queued.${run}`;

/** A queued message, stored by the tab that queued it because the server does not return its text. */
export interface QueuedContent {
  readonly text?: string | undefined;
  readonly hasFiles?: boolean | undefined;
}

export const queuedMessage = (run: string): QueuedContent => parsed<QueuedContent>(queuedKey(run)) ?? {};

export function saveQueued(run: string, message: QueuedContent | undefined): void {
  save(queuedKey(run), message && JSON.stringify({ text: message.text, hasFiles: message.hasFiles }));
}

/** The user's choice for the next run of a thread. */
export interface RunChoice {
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
}
export const choiceOf = (thread: string | undefined): RunChoice => parsed<RunChoice>(choiceKey(thread)) ?? {};

export function saveChoice(thread: string | undefined, choice: RunChoice): void {
  save(choiceKey(thread), JSON.stringify(choice));
}

/** Does not use `crypto.randomUUID`, which pages on plain http do not have. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

function save(key: string, value: string | undefined): void {
  try {
    if (value === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
  } catch {
    // The storage is full, so a stored value may be older than the displayed one.
    sessionStorage.removeItem(key);
  }
}

function parsed<T>(key: string): T | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}
