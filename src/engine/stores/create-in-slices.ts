// Creates threads that begin with many messages. Stages the messages in slices, so that other work can run between the
// slices. Reads do not show the thread until it is complete.

import { hasCode } from "../../agent/core/errors.ts";
import { areLong, type Message } from "../../agent/core/message.ts";
import type { Thread } from "../../agent/core/records.ts";
import { storedMessage } from "../../agent/core/stored-json.ts";
import type { MessagePage, NewThread } from "../../agent/core/stores.ts";
import { jsonCopy } from "../../lib/json.ts";
import { randomId } from "../../lib/random-id.ts";
import { ownTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import { changedMeanwhile, noSuchMessage, threadExists } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import type { MessageText } from "./outcomes.ts";
import { SLICE_ROWS } from "./page.ts";
import * as rules from "./rules.ts";
import type { StagedMessages } from "./thread-head.ts";

/**
 * The number of bytes of messages to write per tick of the event loop. The tick ends with the message that exceeds the
 * limit.
 */
const SLICE_BYTES = 256 * 1024;

type Slices = AsyncIterable<readonly MessageText[]>;

export interface SlicedThread {
  readonly id: string;
  /** The messages, in slices. Each slice is written in its own tick. */
  readonly slices: Slices;
  /** Returns the thread without its messages. `last` is the id of the last message. */
  readonly threadOf: (last: string | undefined) => Omit<NewThread, "messages">;
}

/** Throws `already_exists` and the errors of `slices`. */
export async function createInSlices<Ref>(
  kernel: Kernel<Ref>,
  owner: Owner,
  { id, slices, threadOf }: SlicedThread,
): Promise<Thread> {
  if (await kernel.threads.get(owner, id)) throw threadExists(id);
  const ref = kernel.ref(owner, id);
  const token = randomId();
  try {
    const { last, ...staged } = await stage(kernel, { ref, token, slices });
    return await kernel.change(ref, { isLikelyNew: true }, (view) =>
      rules.createThread(view, jsonCopy(threadOf(last)), staged),
    );
  } catch (error) {
    await kernel.unstage(ref, token).catch(() => {});
    throw error;
  }
}

interface StagingPlace<Ref> {
  readonly ref: Ref;
  readonly token: string;
  readonly slices: Slices;
}

async function stage<Ref>(
  kernel: Kernel<Ref>,
  { ref, token, slices }: StagingPlace<Ref>,
): Promise<StagedMessages & { readonly last: string | undefined }> {
  let [count, bytes] = [0, 0];
  let last: string | undefined;
  for await (const slice of slices) {
    if (slice.length > 0) await kernel.stage(ref, token, slice);
    count += slice.length;
    for (const { text } of slice) bytes += Buffer.byteLength(text);
    last = slice.at(-1)?.id ?? last;
  }
  return { token, count, bytes, last };
}

/** Returns true if a thread with all of these messages can be created in one tick of the event loop. */
export const isOneSlice = (messages: readonly Message[]) =>
  messages.length <= SLICE_ROWS && !areLong(messages, SLICE_BYTES);

/** Returns the messages in slices. If several messages have the same id, returns only the first of them. */
export async function* slicesOf(
  messages: readonly Message[],
  tenant: string,
): AsyncGenerator<readonly MessageText[], void, void> {
  const known = new Set<string>();
  let slice: MessageText[] = [];
  let left = SLICE_BYTES;
  await ownTick(tenant);
  for (const message of messages) {
    if (known.has(message.id)) continue;
    known.add(message.id);
    const text = JSON.stringify(message);
    slice.push({ id: message.id, text });
    left -= text.length;
    if (slice.length < SLICE_ROWS && left > 0) continue;
    yield slice;
    slice = [];
    left = SLICE_BYTES;
    await ownTick(tenant);
  }
  yield slice;
}

/**
 * Yields another thread's messages up to and including `until`. Throws `not_found` if the message does not exist, and
 * `thread_busy` if the thread loses messages in the meantime.
 */
export async function* slicesOfThread<Ref>(
  kernel: Kernel<Ref>,
  owner: Owner,
  { from, until }: { readonly from: string; readonly until: string | undefined },
): AsyncGenerator<readonly MessageText[], void, void> {
  if (until !== undefined && !(await kernel.threads.message(owner, from, until))) throw noSuchMessage(until);
  let after: string | undefined;
  for (;;) {
    await ownTick(owner.tenant);
    const { texts, isLast } = await nextPage(kernel, owner, { from, after });
    const all = texts.map((text) => ({ id: idIn(text), text }));
    const end = all.findIndex(({ id }) => id === until) + 1;
    yield end > 0 ? all.slice(0, end) : all;
    if (isLast || end > 0) return;
    after = all.at(-1)?.id;
  }
}

/** Every text was written from a message, and most texts begin with the message's id. */
const idIn = (text: string) => /^\{"id":"([\w-]+)"/.exec(text)?.[1] ?? storedMessage(text).id;

async function nextPage<Ref>(
  kernel: Kernel<Ref>,
  owner: Owner,
  { from, after }: { readonly from: string; readonly after: string | undefined },
): Promise<MessagePage> {
  try {
    return await kernel.threads.messagePage(owner, from, { after, limit: SLICE_ROWS, bytes: SLICE_BYTES });
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error;
    throw changedMeanwhile(from);
  }
}
