// Reads the versions of a thread's messages.

import { client } from "./session.ts";
import { type DatedMessage, type MessageVersions, sharedLength, versionsOf } from "./versions.ts";

/** If the thread has no branches, reads only the list of branches. */
export async function readVersions(thread: string, signal: AbortSignal): Promise<MessageVersions[]> {
  const branches = await client.threads.branches(thread, signal);
  if (branches.length === 0) return [];
  const ours = await messagesOf(thread, undefined, signal);
  const held = branches.map(async ({ id }) => ({ branch: id, messages: await messagesOf(id, ours, signal) }));
  return versionsOf(ours, await Promise.all(held));
}

const PAGE = 200;

/** Reads all messages. With `until`, stops after the page in which the messages first differ from `until`. */
async function messagesOf(
  thread: string,
  until: readonly DatedMessage[] | undefined,
  signal: AbortSignal,
): Promise<DatedMessage[]> {
  const read: DatedMessage[] = [];
  for (;;) {
    const after = read.at(-1)?.id;
    const page = await client.threads.messages(thread, { limit: PAGE, ...(after ? { after } : {}) }, signal);
    read.push(...page.items.map(({ id, created_at }) => ({ id, created_at })));
    const isParted = until !== undefined && sharedLength(until, read) < read.length;
    if (page.next_cursor === undefined || page.items.length === 0 || isParted) return read;
  }
}
