// The limit on the bytes of a thread's messages. A run whose input would exceed it is refused; a run that reaches it ends.

import { AppError } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { ThreadStore } from "../core/stores.ts";
import type { RunObserver } from "./services.ts";

/** The default limit: 32 MiB. */
export const THREAD_BYTES = 32 * 1024 * 1024;

interface Place {
  readonly owner: Owner;
  readonly thread_id: string;
}

/** Throws `limit_exceeded` when the thread has no room for these messages. */
export async function assertFits(
  threads: Pick<ThreadStore, "bytes">,
  { owner, thread_id }: Place,
  messages: readonly Message[],
  limit = THREAD_BYTES,
): Promise<void> {
  if (messages.length === 0) return;
  let bytes = await threads.bytes(owner, thread_id);
  for (const message of messages) bytes += sizeOf(message);
  if (bytes > limit) throw threadFull(thread_id, bytes, limit);
}

/** Throws `limit_exceeded` before a message is written that the thread, which has `bytes` so far, has no room for. */
export function threadLimit(thread_id: string, bytes: number, limit = THREAD_BYTES): RunObserver {
  let total = bytes;
  return {
    beforeWrite(event) {
      if (event.event !== "on_message") return undefined;
      total += sizeOf(event.data.message);
      if (total > limit) throw threadFull(thread_id, total, limit);
      return undefined;
    },
  };
}

const sizeOf = (message: Message) => Buffer.byteLength(JSON.stringify(message));

function threadFull(threadId: string, bytes: number, limit: number): AppError {
  return new AppError(
    "limit_exceeded",
    `The messages of thread \`${threadId}\` would have ${bytes} bytes; the limit \`thread_bytes\` is ${limit}. Continue in another thread, or replace an earlier message.`,
    { details: { limit: "thread_bytes", most: limit } },
  );
}
