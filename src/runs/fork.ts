// Another thread out of a thread: what was said up to a message, and what was planned and written. It waits for nobody:
// what its calls asked, whoever works for it and what its user allowed stay with the first one.

import { AppError } from "../core/errors.ts";
import { newThreadId, type Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { Thread } from "../core/records.ts";
import type { ThreadStore } from "../core/stores.ts";
import { given } from "../lib/given.ts";
import { admitted } from "../quotas/holds.ts";
import type { Quotas } from "../quotas/index.ts";
import { notFound } from "./manager.ts";

/** The values of a thread's state that go along. */
const KEPT = ["todos", "files"];

export interface Fork {
  /** The last message that goes along; default: the thread's last. */
  readonly message_id?: string;
  readonly id?: string;
  readonly title?: string;
}

/** Throws `not_found`, `invalid_request` for a message that there is not, `already_exists`, `limit_exceeded`. */
export async function forkThread(
  { threads, quotas }: { threads: ThreadStore; quotas: Quotas },
  { owner, threadId }: { owner: Owner; threadId: string },
  { message_id, id = newThreadId(), title }: Fork,
): Promise<Thread> {
  const thread = await threads.get(owner, threadId);
  if (!thread) throw notFound("thread", threadId);
  return admitted(quotas, { owner, thing: "threads", id }, async () => {
    const [all, state] = await Promise.all([
      threads.messages(owner, threadId),
      threads.state(owner, threadId),
    ]);
    const { agent, metadata } = thread;
    return threads.create(owner, {
      ...{ id, metadata, messages: upTo(all, message_id) },
      state: Object.fromEntries(Object.entries(state).filter(([key]) => KEPT.includes(key))),
      ...given({ agent, title: title ?? thread.title }),
    });
  });
}

function upTo(messages: readonly Message[], last: string | undefined): readonly Message[] {
  if (last === undefined) return messages;
  const at = messages.findIndex(({ id }) => id === last);
  if (at === -1)
    throw new AppError("invalid_request", `message_id: there is no message \`${last}\` in this thread.`);
  return messages.slice(0, at + 1);
}
