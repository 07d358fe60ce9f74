// Incomplete messages. When a stop or a failure cuts off an answer, the thread keeps the part that was shown, and the next model call includes a note about it.

import { isoTime } from "../../lib/iso-time.ts";
import { xmlTag } from "../../lib/text.ts";
import type { EventName, StreamEvent } from "../../protocol/event.ts";
import { readSpans, SPAN_STARTS } from "../../protocol/span-reader.ts";
import {
  type AssistantMessage,
  type Content,
  isBlank,
  type Message,
  type Usage,
  userMessage,
} from "./message.ts";
import { storedEvent } from "./stored-json.ts";
import type { LogEntry } from "./stores.ts";

/** The part of the current message that has been shown so far. */
export interface PartialMessage {
  /** Call this with the run's own events, in order. */
  see(event: StreamEvent): void;
  /** Returns the message with the text so far, without calls and thinking, or undefined without text. */
  message(why: NonNullable<AssistantMessage["incomplete"]>): AssistantMessage | undefined;
}

export function trackPartial(): PartialMessage {
  let id = "";
  let model = "";
  let text = "";
  let usage: Usage | undefined;
  let maySearch = false;
  const forget = () => {
    [id, text] = ["", ""];
  };
  const spans = readSpans({
    model: {
      opened({ start: { data } }) {
        [id, model, text] = [data.message_id, data.model, ""];
        usage = undefined;
        maySearch = data.web_search === true;
      },
      progress({ data }) {
        if ("delta" in data) text += data.delta;
      },
      closed({ data }) {
        // If the call succeeded but its answer did not become a message, a guardrail or the store refused the
        // answer.
        if (data.error === undefined) forget();
        usage = data.usage;
      },
      discarded: forget,
    },
  });
  return {
    see(event) {
      if (event.path?.length) return;
      spans.see(event);
      if (event.event === "on_message" && event.data.message.id === id) forget();
    },
    message(why) {
      if (id === "" || isBlank(text)) return undefined;
      const used = usage === undefined ? {} : { usage };
      const base = { id, created_at: isoTime(), role: "assistant", content: text, model, ...used } as const;
      // The pages that the search found are lost, but flow rules must take into account that the text may come from
      // them. An estimated usage may lack a search that the provider had not reported yet.
      const hasSearched =
        maySearch && (usage === undefined || usage.estimated || usage.web_searches !== undefined);
      return { ...base, ...(hasSearched ? { sources: [] } : {}), incomplete: why };
    },
  };
}

/** Events that add or withdraw text of a model's message. */
export const WORDS = ["on_chat_model_stream", "message_discard", "on_message"] as const satisfies EventName[];

/** Reads the log of a run, in order, to restore the text that its last model call was writing. */
export interface LoggedWords {
  add(entry: Pick<LogEntry, "event" | "json">): void;
  partial(): PartialMessage;
}

export function loggedWords(): LoggedWords {
  // The list contains only the texts of the last model call, because the thread contains the others.
  let texts: string[] = [];
  return {
    add({ event, json }) {
      if (event === SPAN_STARTS.model && !storedEvent({ json }).path?.length) texts = [json];
      else if (WORDS.some((name) => name === event)) texts.push(json);
    },
    partial() {
      const partial = trackPartial();
      for (const json of texts) partial.see(storedEvent({ json }));
      return partial;
    },
  };
}

const REASONS: Readonly<Record<NonNullable<AssistantMessage["incomplete"]>, string>> = {
  stopped: "The user stopped your answer above before it was finished.",
  failed: "An error cut off your answer above before it was finished.",
};
const CONTINUE =
  "Continue exactly where it ends. Do not repeat any of it, and do not add an introduction or a comment.";

export const isIncomplete = (message: Message | undefined): message is AssistantMessage =>
  message?.role === "assistant" && message.incomplete !== undefined;

/**
 * Returns the messages with a note after each incomplete answer. The note explains that the answer was cut off. The note begins the user's next message, or is a separate message that asks the model to continue.
 * The answer's thinking is omitted because it is not signed.
 */
export function withIncompleteNotes(messages: readonly Message[]): readonly Message[] {
  if (!messages.some(isIncomplete)) return messages;
  return messages.flatMap((message, at): Message[] => {
    const before = messages[at - 1];
    if (message.role === "user" && isIncomplete(before))
      return [{ ...message, content: withNote(before, message.content) }];
    if (!isIncomplete(message)) return [message];
    const { reasoning: _, ...shown } = message;
    return messages[at + 1]?.role === "user" ? [shown] : [shown, askedToContinue(message)];
  });
}

const noteOf = ({ incomplete = "stopped" }: AssistantMessage, more = "") =>
  xmlTag("note", `${REASONS[incomplete]}${more}`);

function withNote(cut: AssistantMessage, content: Content): Content {
  const note = noteOf(cut);
  return typeof content === "string" ? `${note}\n\n${content}` : [{ type: "text", text: note }, ...content];
}

/** Always creates the same message, so it does not invalidate the provider's cache. */
function askedToContinue(cut: AssistantMessage): Message {
  const { id, created_at } = cut;
  return { ...userMessage(noteOf(cut, ` ${CONTINUE}`)), id: `${id}_continue`, created_at };
}
