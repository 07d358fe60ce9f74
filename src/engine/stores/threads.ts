// The port for threads on top of a kernel. Notifies the user's subscribers of each change.

import type { EventBus, UserEvent } from "../../agent/core/bus.ts";
import { hasCode } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import { storedMessage } from "../../agent/core/stored-json.ts";
import type { MessagePage, ThreadStore } from "../../agent/core/stores.ts";
import { titleFrom } from "../../agent/core/title.ts";
import { deepFreeze, jsonCopy } from "../../lib/json.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { areLong, freeTick, sharedTick } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import { createInSlices, isOneSlice, slicesOf, slicesOfThread } from "./create-in-slices.ts";
import type { Kernel } from "./kernel.ts";
import * as rules from "./rules.ts";

/** The number of bytes of messages to parse per tick of the event loop. */
const PAGE_BYTES = 256 * 1024;

type ThreadChange = Extract<UserEvent, { event: "thread_changed" }>["data"]["change"];

export function createThreads<Thread>(kernel: Kernel<Thread>, bus: Pick<EventBus, "publish">): ThreadStore {
  const publish = (owner: Owner, thread_id: string, change: ThreadChange) =>
    bus.publish(owner, { event: "thread_changed", data: { thread_id, change } });
  const empty = async (owner: Owner, id: string, write: "delete_thread" | "clear_thread") => {
    const isDone = await kernel.change(kernel.ref(owner, id), {}, (view) => rules.emptyThread(view, write));
    if (isDone) publish(owner, id, write === "delete_thread" ? "deleted" : "cleared");
    return isDone;
  };

  return {
    ...kernel.threads,

    async list(owner, query) {
      await sharedTick(owner.tenant);
      return kernel.threads.list(owner, query);
    },

    async state(owner, id) {
      await sharedTick(owner.tenant);
      return kernel.threads.state(owner, id);
    },

    async messages(owner, id, { after, limit } = {}) {
      if (!kernel.threads.messages) return parsed(kernel, owner, { id, after, limit });
      await sharedTick(owner.tenant);
      return kernel.threads.messages(owner, id, omitUndefined({ after, limit }));
    },

    messagePage: (owner, id, page) => readPage(kernel, owner, id, page),

    async fork(owner, from, thread, until) {
      const fork = await createInSlices(kernel, owner, {
        id: thread.id,
        slices: slicesOfThread(kernel, owner, { from, until }),
        threadOf: (last) => ({
          ...thread,
          forked_from: { thread_id: from, ...omitUndefined({ message_id: last }) },
        }),
      });
      publish(owner, thread.id, "created");
      return fork;
    },

    async create(owner, thread) {
      const { messages = [], ...rest } = thread;
      const created = isOneSlice(messages)
        ? await kernel.change(kernel.ref(owner, thread.id), { isLikelyNew: true }, (view) =>
            rules.createThread(view, jsonCopy(thread)),
          )
        : await createInSlices(kernel, owner, {
            id: thread.id,
            slices: slicesOf(messages, owner.tenant),
            threadOf: () => ({ ...rest, ...omitUndefined({ title: thread.title ?? titleFrom(messages) }) }),
          });
      publish(owner, thread.id, "created");
      return created;
    },

    async update(owner, id, change) {
      const isThere = await kernel.change(kernel.ref(owner, id), {}, (view) =>
        rules.updateThread(view, change),
      );
      if (!isThere) return undefined;
      publish(owner, id, "updated");
      return kernel.threads.get(owner, id);
    },

    delete: (owner, id) => empty(owner, id, "delete_thread"),
    clear: (owner, id) => empty(owner, id, "clear_thread"),
  };
}

interface Window {
  readonly id: string;
  readonly after: string | undefined;
  readonly limit: number | undefined;
}

async function parsed<Thread>(kernel: Kernel<Thread>, owner: Owner, window: Window): Promise<Message[]> {
  for (;;) {
    const all: Message[] = [];
    try {
      for await (const page of pages(kernel, owner, window)) all.push(...page);
      return all;
    } catch (error) {
      // A rewind between two pages deleted the last message read, so all messages are read again.
      const last = all.at(-1)?.id;
      if (last === undefined || !hasCode(error, "not_found")) throw error;
    }
  }
}

/** Returns a page that the caller can parse at once. A store can serve many readers in one tick of the event loop. */
async function readPage<Thread>(
  kernel: Kernel<Thread>,
  owner: Owner,
  ...[id, page]: [id: string, page: Parameters<ThreadStore["messagePage"]>[2]]
): Promise<MessagePage> {
  await sharedTick(owner.tenant);
  const read = await kernel.threads.messagePage(owner, id, page);
  await (areLong(read.texts) ? freeTick(owner.tenant) : sharedTick(owner.tenant));
  return read;
}

async function* pages<Thread>(
  kernel: Kernel<Thread>,
  owner: Owner,
  { id, after, limit }: Window,
): AsyncGenerator<Message[], void, void> {
  let from = after;
  for (let left = limit; left !== 0; ) {
    const page = { after: from, limit: left, bytes: PAGE_BYTES };
    const { texts, isLast } = await readPage(kernel, owner, id, page);
    const messages = texts.map((text) => deepFreeze(storedMessage(text)));
    yield messages;
    if (isLast) return;
    from = messages.at(-1)?.id;
    left = left === undefined ? undefined : left - messages.length;
  }
}
