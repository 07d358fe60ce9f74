// Messages to the model that are not part of the thread. Each stays behind the message that was newest when it was added, so
// that requests keep their common beginning for the prompt cache.

import { xmlTag } from "../../lib/text.ts";
import { type Message, userMessage } from "../core/message.ts";
import type { Run } from "../core/tool.ts";

/** Above this the oldest is dropped. */
const MAX_REMINDERS = 20;

export interface Reminders {
  add(text: string, run: Run): void;
  /** The messages with the reminders in place; one whose message is missing is left out. */
  among(messages: readonly Message[]): readonly Message[];
}

export function reminders(): Reminders {
  const said: { readonly after: string | undefined; readonly message: Message }[] = [];
  return {
    add(text, run) {
      // A user message, because providers treat system messages in the middle differently.
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
