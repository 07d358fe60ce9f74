// Reads the versions of a thread's messages.

import { client } from "./session.ts";
import { type Dated, type Parting, partingAt, partingsOf } from "./versions.ts";

/** If the thread has no branches, reads only the list of branches. */
export async function readPartings(thread: string, signal: AbortSignal): Promise<Parting[]> {
  const branches = await client.threads.branches(thread, signal);
  if (branches.length === 0) return [];
  const ours = await messagesOf(thread, undefined, signal);
  const held = branches.map(async ({ id }) => ({ branch: id, messages: await messagesOf(id, ours, signal) }));
  return partingsOf(ours, await Promise.all(held));
}

const PAGE = 200;

/** Reads all messages. With `until`, stops after the page in which the messages first differ from `until`. */
async function messagesOf(
  thread: string,
  until: readonly Dated[] | undefined,
  signal: AbortSignal,
): Promise<Dated[]> {
  const read: Dated[] = [];
  for (;;) {
    const after = read.at(-1)?.id;
    const page = await client.threads.messages(thread, { limit: PAGE, ...(after ? { after } : {}) }, signal);
    read.push(...page.items.map(({ id, created_at }) => ({ id, created_at })));
    const isParted = until !== undefined && partingAt(until, read) < read.length;
    if (page.next_cursor === undefined || page.items.length === 0 || isParted) return read;
  }
}
