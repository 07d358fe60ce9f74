// Words to the model beside the conversation: shown with every request of the run, and no part of the thread.
// Each stands behind the message that was the newest when it was said and stays there, so that one request
// begins as the one before did.

import { type Message, userMessage } from "../core/message.ts";
import type { Run } from "../core/tool.ts";
import { xmlTag } from "../lib/text.ts";

/** Past it the oldest is no longer shown. */
const MAX_REMINDERS = 20;

export interface Reminders {
  add(text: string, run: Run): void;
  /** The messages, with each reminder in its place. One whose place is not among them is not shown. */
  among(messages: readonly Message[]): readonly Message[];
}

export function reminders(): Reminders {
  const said: { readonly after: string | undefined; readonly message: Message }[] = [];
  return {
    add(text, run) {
      // A user message: what providers do with a system message in the middle differs.
      said.push({ after: run.messages.at(-1)?.id, message: userMessage(xmlTag("reminder", text)) });
      if (said.length > MAX_REMINDERS) said.shift();
    },
    among(messages) {
      if (said.length === 0) return messages;
      return messages.flatMap((each) => [
        each,
        ...said.filter(({ after }) => after === each.id).map(({ message }) => message),
      ]);
    },
  };
}
