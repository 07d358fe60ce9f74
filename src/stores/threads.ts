// The thread port over a kernel. The user's subscribers hear of each change.

import type { EventBus, UserEvent } from "../core/bus.ts";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { MessagePage, ThreadStore } from "../core/stores.ts";
import { areLong, freeTurn, ownTurn, sharedTurn } from "../lib/async.ts";
import { deepFreeze, jsonCopy } from "../lib/json.ts";
import { omitUndefined } from "../lib/omit-undefined.ts";
import { randomId } from "../lib/random-id.ts";
import { changedMeanwhile, noSuchMessage, threadExists } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import { SLICE_ROWS } from "./page.ts";
import * as rules from "./rules.ts";
import type { Staged } from "./thread-head.ts";

/** Of messages that are parsed or copied in one turn of the event loop. */
const PAGE_BYTES = 256 * 1024;

type Change = Extract<UserEvent, { event: "thread_changed" }>["data"]["change"];

export function createThreads<Thread>(kernel: Kernel<Thread>, bus: Pick<EventBus, "publish">): ThreadStore {
  const publish = (owner: Owner, thread_id: string, change: Change) =>
    bus.publish(owner, { event: "thread_changed", data: { thread_id, change } });

  return {
    ...kernel.threads,

    async list(owner, query) {
      await sharedTurn(owner.tenant);
      return kernel.threads.list(owner, query);
    },

    async state(owner, id) {
      await sharedTurn(owner.tenant);
      return kernel.threads.state(owner, id);
    },

    async messages(owner, id, { after, limit } = {}) {
      if (!kernel.threads.messages) return parsed(kernel, owner, { id, after, limit });
      await sharedTurn(owner.tenant);
      return kernel.threads.messages(owner, id, omitUndefined({ after, limit }));
    },

    async fork(owner, from, thread, until) {
      const ref = kernel.ref(owner, thread.id);
      if (await kernel.threads.get(owner, thread.id)) throw threadExists(thread.id);
      if (until !== undefined && !(await kernel.threads.message(owner, from, until)))
        throw noSuchMessage(until);
      const token = randomId();
      try {
        const { last, ...staged } = await stageCopy(kernel, { owner, from, ref, token, until });
        const forked_from = { thread_id: from, ...(last === undefined ? {} : { message_id: last }) };
        const fork = await kernel.change(ref, { isLikelyNew: true }, (view) =>
          rules.createThread(view, { ...jsonCopy(thread), forked_from }, staged),
        );
        publish(owner, thread.id, "created");
        return fork;
      } catch (error) {
        await kernel.unstage(ref, token).catch(() => {});
        throw error;
      }
    },

    async create(owner, thread) {
      const created = await kernel.change(kernel.ref(owner, thread.id), { isLikelyNew: true }, (view) =>
        rules.createThread(view, jsonCopy(thread)),
      );
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

    async delete(owner, id) {
      const isDeleted = await kernel.change(kernel.ref(owner, id), {}, (view) =>
        rules.emptyThread(view, "delete_thread"),
      );
      if (isDeleted) publish(owner, id, "deleted");
      return isDeleted;
    },

    async clear(owner, id) {
      const isCleared = await kernel.change(kernel.ref(owner, id), {}, (view) =>
        rules.emptyThread(view, "clear_thread"),
      );
      if (isCleared) publish(owner, id, "cleared");
      return isCleared;
    },
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
      // A rewind between two pages has deleted the last message that was read. All are read again.
      const last = all.at(-1)?.id;
      if (last === undefined || !hasCode(error, "not_found")) throw error;
    }
  }
}

async function* pages<Thread>(
  kernel: Kernel<Thread>,
  owner: Owner,
  { id, after, limit }: Window,
): AsyncGenerator<Message[], void, void> {
  let from = after;
  for (let left = limit; left !== 0; await ownTurn(owner.tenant)) {
    const page = { after: from, limit: left, bytes: PAGE_BYTES };
    const { texts, isLast } = await kernel.threads.messagePage(owner, id, page);
    // A store may answer many readers in one turn.
    await (areLong(texts) ? freeTurn(owner.tenant) : sharedTurn(owner.tenant));
    // Every text was written from a message.
    const messages = texts.map((text) => deepFreeze(JSON.parse(text) as Message));
    yield messages;
    if (isLast) return;
    from = messages.at(-1)?.id;
    left = left === undefined ? undefined : left - messages.length;
  }
}

interface Copy<Thread> {
  readonly owner: Owner;
  readonly from: string;
  readonly ref: Thread;
  readonly token: string;
  readonly until: string | undefined;
}

/** Stages the messages of thread `from` for thread `ref`, slice by slice. `last` is the id of the last one. */
async function stageCopy<Thread>(
  kernel: Kernel<Thread>,
  { owner, from, ref, token, until }: Copy<Thread>,
): Promise<Staged & { readonly last: string | undefined }> {
  let [count, bytes] = [0, 0];
  let after: string | undefined;
  for (;;) {
    await ownTurn(owner.tenant);
    const { texts, isLast } = await nextSlice(kernel, owner, { from, after });
    const all = texts.map((text) => ({ id: idIn(text), text }));
    const end = all.findIndex(({ id }) => id === until) + 1;
    const slice = end > 0 ? all.slice(0, end) : all;
    if (slice.length > 0) await kernel.stage(ref, token, slice);
    count += slice.length;
    for (const { text } of slice) bytes += Buffer.byteLength(text);
    after = slice.at(-1)?.id;
    if (isLast || end > 0) return { token, count, bytes, last: after };
  }
}

/** Every text was written from a message, and most begin with its id. */
const idIn = (text: string) => /^\{"id":"([\w-]+)"/.exec(text)?.[1] ?? (JSON.parse(text) as Message).id;

async function nextSlice<Thread>(
  kernel: Kernel<Thread>,
  owner: Owner,
  { from, after }: { readonly from: string; readonly after: string | undefined },
): Promise<MessagePage> {
  try {
    return await kernel.threads.messagePage(owner, from, { after, limit: SLICE_ROWS, bytes: PAGE_BYTES });
  } catch (error) {
    if (!hasCode(error, "not_found")) throw error;
    throw changedMeanwhile(from);
  }
}
