// What the model is shown of a thread: all of it, or a summary and what came after.

import { z } from "zod";
import { type Message, type SystemMessage, textOf, userMessage } from "../../core/message.ts";
import { systemMessages } from "../../core/messages.ts";
import type { Run } from "../../core/tool.ts";
import { tagged } from "../../lib/tagged.ts";

/** The slot of the thread's state that holds its summary. */
export const STATE_KEY = "summary";

const Summary = z.object({
  up_to: z.string().describe("The newest message that it covers."),
  seen: z.string().describe("The newest message there was when it was made."),
  text: z.string(),
  tokens_before: z.int(),
});
export type Summary = z.infer<typeof Summary>;

export interface View {
  readonly summary?: Summary;
  /** What a request holds instead of the thread. */
  readonly messages: readonly Message[];
  /** The part of the thread that is shown as it is. */
  readonly tail: readonly Message[];
  /** The end of `tail` that was written under this very view: its usage counts say how large that is. */
  readonly measured: readonly Message[];
}

/** What system messages may take beside a summary. */
const MAX_INSTRUCTION_CHARS = 16_000;

/** A summary of messages that are gone, because the thread was cleared, is none. */
export function viewOf(messages: readonly Message[], state: Run["state"]): View {
  const summary = Summary.safeParse(state.get(STATE_KEY)).data;
  const at = summary ? messages.findLastIndex(({ id }) => id === summary.up_to) : -1;
  if (!summary || at === -1) return { messages, tail: messages, measured: messages };
  const tail = messages.slice(at + 1);
  const seen = messages.findLastIndex(({ id }) => id === summary.seen);
  return {
    summary,
    messages: [...instructions(messages.slice(0, at + 1)), introduction(summary), ...tail],
    tail,
    measured: seen === -1 ? [] : messages.slice(Math.max(seen, at) + 1),
  };
}

/** A user message: what providers do with a system message in the middle differs. */
function introduction({ text }: Summary): Message {
  const summary = tagged("conversation_summary", text);
  return userMessage(
    `This conversation began before what you see. What came before, in short:\n\n${summary}`,
  );
}

/** System messages are orders, and a summary of an order is weaker: the newest are kept, each text once. */
function instructions(messages: readonly Message[]): SystemMessage[] {
  const kept = new Map<string, SystemMessage>();
  let room = MAX_INSTRUCTION_CHARS;
  for (const message of systemMessages(messages).toReversed()) {
    const text = textOf(message.content);
    if (kept.has(text)) continue;
    room -= text.length;
    if (room < 0) break;
    kept.set(text, message);
  }
  return [...kept.values()].toReversed();
}
