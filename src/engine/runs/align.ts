// What the messages that a client sends are to the thread: new, a repeat, or in place of what it has.

import { typedByBytes } from "../../agent/core/media-type.ts";
import type { Content, Message, UserMessage } from "../../agent/core/message.ts";

/** A user's message as the client holds it. */
export interface SentMessage {
  /** The client's own. */
  readonly id?: string | undefined;
  readonly content: Content;
}

/** What the newest message of a client's list is to the thread. */
export type Alignment =
  /** It follows what the thread has. */
  | { readonly as: "new" }
  /** The thread's newest message of the user, sent again. */
  | { readonly as: "repeat" }
  /** It takes the place of this message and all that follow it. */
  | { readonly as: "replacement"; readonly of: string };

/**
 * Compares the user's messages that a client sends, oldest first, with those of the thread, by id. A client replaces only what it
 * shows that it knows: a list in which the thread knows no message says nothing of the thread, and its newest message is new.
 * `isWhole`: the client sends everything that it has, so a message of the thread that is missing from the list, after one that
 * is in it, was edited away. `isRegenerated`: the client wants another answer to its newest message.
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

/** The thread's media types are those of the bytes, which the client may call otherwise. */
const isSame = (a: Content, b: Content) =>
  JSON.stringify(typedByBytes(a)) === JSON.stringify(typedByBytes(b));

/** The key that makes a repeated request for the same message, on the same thread as it is now, one run. */
export function keyOfMessage({ id }: UserMessage, thread: readonly Message[]): string {
  return `message:${id}:${thread.at(-1)?.id ?? ""}`;
}
