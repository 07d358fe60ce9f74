// Compares the messages that a client sends with the thread's messages: they may be new, repeated, or replacements.

import { typedByBytes } from "../../agent/core/media-type.ts";
import type { Content, Message, UserMessage } from "../../agent/core/message.ts";

/** A user's message as sent by the client. */
export interface SentMessage {
  /** Id chosen by the client. */
  readonly id?: string | undefined;
  readonly content: Content;
}

/** How the newest message in a client's list relates to the thread. */
export type Alignment =
  /** The message follows the thread's messages. */
  | { readonly as: "new" }
  /** The message repeats the thread's newest user message. */
  | { readonly as: "repeat" }
  /** The message replaces this message and all that follow it. */
  | { readonly as: "replacement"; readonly of: string };

/**
 * Compares the user messages that a client sends, oldest first, with those of the thread, by id. A client can
 * replace only messages that it includes in its list. If the thread contains none of the list's messages, the
 * newest message is new.
 *
 * `isWhole` means that the client sends its complete list. A thread message that follows an included message
 * but is missing from the list was removed by an edit. `isRegenerated` means that the client wants another
 * answer to its newest message.
 */
export function align(
  thread: readonly Message[],
  sent: readonly SentMessage[],
  { isWhole, isRegenerated }: { readonly isWhole: boolean; readonly isRegenerated: boolean },
): Alignment {
  const known = thread.filter((message): message is UserMessage => message.role === "user");
  const newest = sent.at(-1);
  const place = known.findIndex(({ id }) => id === newest?.id);
  const same = known[place];
  if (same && newest) {
    const isRepeat = !isRegenerated && place === known.length - 1 && isSame(same.content, newest.content);
    return isRepeat ? { as: "repeat" } : { as: "replacement", of: same.id };
  }
  if (!isWhole) return { as: "new" };
  const ids = new Set(sent.map(({ id }) => id));
  const before = known.findLastIndex(({ id }) => ids.has(id));
  const next = before < 0 ? undefined : known[before + 1];
  return next ? { as: "replacement", of: next.id } : { as: "new" };
}

/** The thread derives media types from the bytes, and the client may use other names for them. */
const isSame = (a: Content, b: Content) =>
  JSON.stringify(typedByBytes(a)) === JSON.stringify(typedByBytes(b));

/** Returns a key that makes repeated requests for the same message, on the unchanged thread, return the same run. */
export function keyOfMessage({ id }: UserMessage, thread: readonly Message[]): string {
  return `message:${id}:${thread.at(-1)?.id ?? ""}`;
}
