// The size of a thread's messages: its limit, and the amount that counts towards the `stored_bytes` quota. A run is
// refused if its input would exceed the limit or the quota. A run that reaches the limit or the quota while it is
// working is ended.

import { AppError } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import type { Thread } from "../../agent/core/records.ts";
import type { NewThread, ThreadStore } from "../../agent/core/stores.ts";
import { isTickSpent, sharedTick } from "../../lib/ticks.ts";
import { isTerminal } from "../../protocol/event.ts";
import type { Owner } from "../../protocol/ids.ts";
import { withHold } from "../quotas/holds.ts";
import { MAKING_MS, type Quotas } from "../quotas/index.ts";
import type { RunObserver, RunServices } from "./services.ts";

/** The default limit: 32 MiB. */
export const THREAD_BYTES = 32 * 1024 * 1024;

interface ThreadKey {
  readonly owner: Owner;
  readonly thread_id: string;
}

/**
 * Returns the thread's size in bytes after adding these messages to a thread of `before` bytes. Throws `limit_exceeded`
 * if this size exceeds the limit.
 */
export async function bytesWith(
  before: number,
  { owner, thread_id }: ThreadKey,
  messages: readonly Message[],
  limit = THREAD_BYTES,
): Promise<number | undefined> {
  if (messages.length === 0) return undefined;
  let bytes = before;
  for (const message of messages) {
    if (isTickSpent()) await sharedTick(owner.tenant);
    bytes += sizeOf(message);
  }
  if (bytes > limit) throw threadFull(thread_id, bytes, limit);
  return bytes;
}

interface ByteCounters {
  readonly threads: Pick<ThreadStore, "bytes">;
  readonly quotas: Pick<Quotas, "counts" | "setStored" | "recordStored"> | undefined;
}

/**
 * How long the expected bytes of a new thread count towards the quota before its first run ends or adds messages, in
 * milliseconds. This is also how long a waiting run counts.
 */
const BEGINNING_MS = 3_600_000;

/**
 * Counts the bytes that `work` will store in the thread towards the quota before `work` stores anything. If `work`
 * throws, counts the bytes stored so far. If the process dies, the bytes of a new thread continue to count for an hour.
 * Throws `limit_exceeded` for a quota, and the errors of `work`.
 */
export async function storing<T>(
  counted: ByteCounters,
  { owner, thread_id }: ThreadKey,
  { bytes, isNew }: { readonly bytes: number | undefined; readonly isNew: boolean },
  work: () => Promise<T>,
): Promise<T> {
  if (bytes === undefined) return work();
  await counted.quotas?.setStored(owner, thread_id, bytes, isNew ? BEGINNING_MS : undefined);
  try {
    return await work();
  } catch (error) {
    await recount(counted, { owner, thread_id });
    throw error;
  }
}

interface CreateServices {
  readonly threads: Pick<ThreadStore, "bytes" | "create">;
  readonly quotas: Quotas;
  readonly threadBytes: number | undefined;
}

/**
 * Creates a thread with initial messages, and counts the thread and its bytes towards the quotas. Throws
 * `already_exists` or `limit_exceeded`.
 */
export function createWithMessages(
  { threads, quotas, threadBytes }: CreateServices,
  owner: Owner,
  thread: NewThread,
): Promise<Thread> {
  const { id, messages = [] } = thread;
  const place = { owner, thread_id: id };
  return counting({ threads, quotas }, place, async (store) => {
    const bytes = await bytesWith(0, place, messages, threadBytes);
    return store(bytes, () => threads.create(owner, thread));
  });
}

/**
 * Counts the thread that `work` creates, and the number of bytes that `work` passes to `store`, towards the quotas. If
 * the process dies, the thread and its bytes continue to count for ten minutes. Throws `limit_exceeded` and the errors
 * of `work`.
 */
export function counting<T>(
  { threads, quotas }: { readonly threads: Pick<ThreadStore, "bytes">; readonly quotas: Quotas },
  place: ThreadKey,
  work: (store: (bytes: number | undefined, create: () => Promise<T>) => Promise<T>) => Promise<T>,
): Promise<T> {
  const { owner, thread_id: id } = place;
  return withHold(quotas, { owner, id }, () =>
    work(async (bytes, create) => {
      if (bytes === undefined) return create();
      await quotas.setStored(owner, id, bytes, MAKING_MS);
      try {
        return await create();
      } finally {
        await recount({ threads, quotas }, place);
      }
    }),
  );
}

/**
 * Updates the quota with the thread's current size in bytes. Never throws, because the thread's next run corrects a
 * wrong count.
 */
export async function recount(
  { threads, quotas }: ByteCounters,
  { owner, thread_id }: ThreadKey,
): Promise<void> {
  if (!quotas?.counts("stored_bytes")) return;
  try {
    await quotas.recordStored(owner, thread_id, await threads.bytes(owner, thread_id));
  } catch {
    // The store is unreachable.
  }
}

/** The number of bytes that a thread can grow before its quota is checked again. */
const STEP_BYTES = 64 * 1024;

/**
 * Throws `limit_exceeded` before writing a message that does not fit into the thread or its quota. `bytes` is the
 * thread's size so far. Counts the run's stored bytes before the run's end is written.
 */
export function threadLimit(
  { quotas, threadBytes: limit = THREAD_BYTES }: Pick<RunServices, "quotas" | "threadBytes">,
  { owner, thread_id }: ThreadKey,
  bytes: number,
): RunObserver {
  let [total, asked] = [bytes, bytes];
  return {
    beforeWrite(event) {
      if (isTerminal(event.event)) return quotas?.recordStored(owner, thread_id, total).catch(() => {});
      if (event.event !== "on_message") return undefined;
      total += sizeOf(event.data.message);
      if (total > limit) throw threadFull(thread_id, total, limit);
      if (total - asked < STEP_BYTES) return undefined;
      asked = total;
      return quotas?.setStored(owner, thread_id, total);
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
