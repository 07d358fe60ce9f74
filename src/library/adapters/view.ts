// What a model is shown in the place of a thread's first messages, from one of its calls to the next. The thread itself
// keeps everything.

import type { Message } from "../../core/message.ts";

export interface View {
  /** `messages` with what was replaced as it was replaced. */
  of(messages: readonly Message[]): readonly Message[];
  /** From now on `shown` stands for `messages`, whatever comes after them. */
  replace(messages: readonly Message[], shown: readonly Message[]): void;
}

export function createView(): View {
  let replaced: { readonly shown: readonly Message[]; readonly last: string | undefined } | undefined;
  return {
    of(messages) {
      if (!replaced) return messages;
      const { shown, last } = replaced;
      const end = messages.findLastIndex(({ id }) => id === last);
      // Who stands further out shows something else by now: that is then the beginning.
      if (last !== undefined && end === -1) return messages;
      return [...shown, ...messages.slice(end + 1)];
    },
    replace(messages, shown) {
      replaced = { shown: [...shown], last: messages.at(-1)?.id };
    },
  };
}
