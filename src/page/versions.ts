// Finds where a conversation and its branches differ: the versions of a message, each with the messages that follow it.

import type { Message } from "../client/client.ts";

export type DatedMessage = Pick<Message, "id" | "created_at">;

export interface Version {
  /** The id of its first message. */
  readonly first: string;
  /** The branch that contains it. Undefined for the thread itself. */
  readonly branch?: string;
  readonly created_at: string;
}

/** The versions of the messages from one position on, at which a thread and its branches differ. */
export interface MessageVersions {
  /** The thread's messages, starting at that position. */
  readonly ids: readonly string[];
  /** The versions, oldest first. One of them is the thread's own. */
  readonly versions: readonly Version[];
}

interface BranchMessages {
  readonly branch: string;
  readonly messages: readonly DatedMessage[];
}

/**
 * `branches`: newest first. If several branches continue the same way after a difference, the newest is used as the
 * version.
 */
export function versionsOf(
  ours: readonly DatedMessage[],
  branches: readonly BranchMessages[],
): MessageVersions[] {
  const found = new Map<number, Version[]>();
  for (const { branch, messages } of branches) {
    const at = sharedLength(ours, messages);
    const [own, other] = [ours[at], messages[at]];
    if (!own || !other) continue;
    const versions = found.get(at) ?? [{ first: own.id, created_at: own.created_at }];
    if (!versions.some(({ first }) => first === other.id))
      versions.push({ first: other.id, branch, created_at: other.created_at });
    found.set(at, versions);
  }
  return [...found].map(([at, versions]) => ({
    ids: ours.slice(at).map(({ id }) => id),
    versions: versions.sort((a, b) => (a.created_at < b.created_at ? -1 : 1)),
  }));
}

/** Returns the number of identical messages at the start. */
export function sharedLength(ours: readonly DatedMessage[], theirs: readonly DatedMessage[]): number {
  const at = theirs.findIndex(({ id }, index) => ours[index]?.id !== id);
  return at < 0 ? theirs.length : at;
}
