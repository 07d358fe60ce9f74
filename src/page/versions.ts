// Where a conversation and its branches part: the versions of a message, each with what followed it.

import type { Message } from "../client/client.ts";

export type Dated = Pick<Message, "id" | "created_at">;

export interface Version {
  /** The id of its first message. */
  readonly first: string;
  /** That holds it. Absent: the thread itself does. */
  readonly branch?: string;
  readonly created_at: string;
}

export interface Parting {
  /** The thread's messages from there on. */
  readonly ids: readonly string[];
  /** Oldest first; one of them is the thread's own. */
  readonly versions: readonly Version[];
}

interface BranchMessages {
  readonly branch: string;
  readonly messages: readonly Dated[];
}

/** `branches`: newest first. Of those that begin alike after a parting, the newest is the version. */
export function partingsOf(ours: readonly Dated[], branches: readonly BranchMessages[]): Parting[] {
  const found = new Map<number, Version[]>();
  for (const { branch, messages } of branches) {
    const at = partingAt(ours, messages);
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

/** The number of messages with which both begin. */
export function partingAt(ours: readonly Dated[], theirs: readonly Dated[]): number {
  const at = theirs.findIndex(({ id }, index) => ours[index]?.id !== id);
  return at < 0 ? theirs.length : at;
}
