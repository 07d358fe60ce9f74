// The thread port over a kernel.

import { setImmediate as nextTurn } from "node:timers/promises";
import { hasCode } from "../core/errors.ts";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { ThreadStore } from "../core/stores.ts";
import { jsonCopy } from "../lib/json.ts";
import type { Kernel } from "./kernel.ts";
import * as rules from "./rules.ts";

/** Of messages that are parsed in one turn of the event loop. */
const PAGE_BYTES = 256 * 1024;

export function createThreads<Thread>(kernel: Kernel<Thread>): ThreadStore {
  return {
    ...kernel.threads,

    async messages(owner, id, { after, limit } = {}) {
      for (;;) {
        const all: Message[] = [];
        try {
          for await (const page of pages(kernel, owner, { id, after, limit })) all.push(...page);
          return all;
        } catch (error) {
          // A rewind between two pages has deleted the last message that was read. All are read again.
          const last = all.at(-1)?.id;
          if (last === undefined || !hasCode(error, "not_found")) throw error;
        }
      }
    },

    create(owner, thread) {
      return kernel.change(kernel.ref(owner, thread.id), { isLikelyNew: true }, (view) =>
        rules.createThread(view, jsonCopy(thread)),
      );
    },

    async update(owner, id, change) {
      const isThere = await kernel.change(kernel.ref(owner, id), {}, (view) =>
        rules.updateThread(view, change),
      );
      return isThere ? kernel.threads.get(owner, id) : undefined;
    },

    delete(owner, id) {
      return kernel.change(kernel.ref(owner, id), {}, (view) => rules.emptyThread(view, "delete_thread"));
    },

    clear(owner, id) {
      return kernel.change(kernel.ref(owner, id), {}, (view) => rules.emptyThread(view, "clear_thread"));
    },
  };
}

interface Window {
  readonly id: string;
  readonly after: string | undefined;
  readonly limit: number | undefined;
}

async function* pages<Thread>(
  kernel: Kernel<Thread>,
  owner: Owner,
  { id, after, limit }: Window,
): AsyncGenerator<Message[], void, void> {
  let from = after;
  for (let left = limit; left !== 0; await nextTurn()) {
    const page = { after: from, limit: left, bytes: PAGE_BYTES };
    const { texts, isLast } = await kernel.threads.messagePage(owner, id, page);
    // Every text was written from a message.
    const messages = texts.map((text) => JSON.parse(text) as Message);
    yield messages;
    if (isLast) return;
    from = messages.at(-1)?.id;
    left = left === undefined ? undefined : left - messages.length;
  }
}
