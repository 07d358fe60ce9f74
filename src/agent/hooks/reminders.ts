// Messages to the model that are not part of the thread. Each reminder keeps its place after the message that was most
// recent when the reminder was added, so requests keep a common prefix for the prompt cache.

import { xmlTag } from "../../lib/text.ts";
import { type Message, userMessage } from "../core/message.ts";
import type { Run } from "../core/tool.ts";

/** The maximum number of reminders. When there are more, the oldest reminder is dropped. */
const MAX_REMINDERS = 20;

export interface Reminders {
  add(text: string, run: Run): void;
  /** Inserts the reminders into the messages. Skips a reminder whose preceding message is missing. */
  among(messages: readonly Message[]): readonly Message[];
}

export function reminders(): Reminders {
  const said: { readonly after: string | undefined; readonly message: Message }[] = [];
  return {
    add(text, run) {
      // This is a user message because providers treat system messages within a conversation differently.
      said.push({ after: run.messages.at(-1)?.id, message: userMessage(xmlTag("reminder", text)) });
      if (said.length > MAX_REMINDERS) said.shift();
    },
    among(messages) {
      return messages.flatMap((each) => [
        each,
        ...said.filter(({ after }) => after === each.id).map(({ message }) => message),
      ]);
    },
  };
}
