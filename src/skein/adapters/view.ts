// Messages that the model sees instead of the start of a thread, from one model call to the next. The thread keeps
// every message.

import type { Message } from "../../index.ts";

export interface MessageView {
  /** Returns `messages` with the replacement applied. */
  of(messages: readonly Message[]): readonly Message[];
  /** From now on, replaces `messages` with `shown` and keeps all messages that follow them. */
  replace(messages: readonly Message[], shown: readonly Message[]): void;
}

export function createView(): MessageView {
  let replaced: { readonly shown: readonly Message[]; readonly last: string | undefined } | undefined;
  return {
    of(messages) {
      if (!replaced) return messages;
      const { shown, last } = replaced;
      const end = messages.findLastIndex(({ id }) => id === last);
      // An outer hook has replaced the messages, so start again from its view.
      if (last !== undefined && end === -1) return messages;
      return [...shown, ...messages.slice(end + 1)];
    },
    replace(messages, shown) {
      replaced = { shown: [...shown], last: messages.at(-1)?.id };
    },
  };
}
