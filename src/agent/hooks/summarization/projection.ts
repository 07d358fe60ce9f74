// The model's view of a thread: all messages, or a summary and the messages after it. The file also determines the size of
// the view and where to cut.

import { z } from "zod";
import { xmlTag } from "../../../lib/text.ts";
import {
  estimateTokens,
  type Message,
  type SystemMessage,
  systemMessages,
  textOf,
  toolMessages,
  unanswered,
  userMessage,
} from "../../core/message.ts";
import type { ModelRequest } from "../../core/model.ts";
import type { Run } from "../../core/tool.ts";
import { estimateRequest } from "../../core/usage-meter.ts";

/** The state key of the thread's summary. */
export const STATE_KEY = "summary";

const Summary = z.object({
  up_to: z.string().describe("Id of the most recent message that the summary covers."),
  seen: z.string().describe("Id of the most recent message when the summary was created."),
  text: z.string(),
  tokens_before: z.int(),
});
export type Summary = z.infer<typeof Summary>;

export interface ModelView {
  readonly summary?: Summary;
  /** The messages of a request. */
  readonly messages: readonly Message[];
  /** The messages that the model sees unchanged. */
  readonly tail: readonly Message[];
  /**
   * The part of `tail` that was written after the current summary was created. The usage counts in these
   * messages measure requests that contained the summary.
   */
  readonly measured: readonly Message[];
}

/** The maximum number of characters in the system messages next to a summary. */
const MAX_INSTRUCTION_CHARS = 16_000;

/** Returns the view of a thread. Ignores a summary whose messages were deleted. */
export function viewOf(messages: readonly Message[], state: Run["state"]): ModelView {
  const slot = state.get(STATE_KEY);
  // This is the most common case, and the check runs for every call.
  if (slot === undefined) return { messages, tail: messages, measured: messages };
  const summary = Summary.safeParse(slot).data;
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

/**
 * Returns a message that introduces the summary. It is a user message because providers treat system messages
 * within a conversation differently.
 */
function introduction({ text }: Summary): Message {
  const summary = xmlTag("conversation_summary", text);
  return userMessage(`This conversation began earlier. Summary of the earlier messages:\n\n${summary}`);
}

/**
 * Returns the most recent system messages verbatim, because a summary would weaken them. Includes each text
 * only once.
 */
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

/**
 * Returns the provider's count for the most recent answer plus an estimate of all later messages. Otherwise,
 * returns an estimate. Ignores a count that is far below the size of the tool results, because it was made
 * for a request with shortened results.
 */
export function countTokens(view: ModelView, request: ModelRequest): number {
  const at = view.measured.findLastIndex((message) => counted(message) > 0);
  const answer = view.measured[at];
  if (!answer) return estimateRequest({ ...request, messages: view.messages });
  const least = estimateTokens(toolMessages(view.tail)) / 2;
  return Math.max(least, counted(answer) + estimateTokens(view.measured.slice(at + 1)));
}

function counted(message: Message): number {
  const usage = message.role === "assistant" ? message.usage : undefined;
  return usage && usage.input_tokens > 0 ? usage.input_tokens + usage.output_tokens : 0;
}

const MIN_KEPT = 2;

/**
 * Returns the number of messages to summarize, counted from the start, or 0 if no position is suitable. Keeps
 * at least two messages and the fraction `keep`, or fewer if they exceed `room` tokens. Never separates a
 * call from its result. Prefers a boundary between two turns.
 */
export function cutPoint(messages: readonly Message[], keep: number, room: number): number {
  const sizes = messages.map((message) => estimateTokens([message]));
  let latest = messages.length - Math.max(MIN_KEPT, Math.ceil(messages.length * keep));
  let kept = sum(sizes.slice(Math.max(latest, 0)));
  for (; latest < messages.length - MIN_KEPT && kept > room; latest++) kept -= sizes[latest] ?? 0;

  let step = 0;
  for (let at = latest; at > 0; at--) {
    const role = messages[at]?.role;
    const isPlace = role === "user" || (step === 0 && role !== "tool");
    if (isPlace && unanswered(messages.slice(0, at)).length === 0) {
      if (role === "user" && kept <= room) return at;
      step ||= at;
    }
    kept += sizes[at - 1] ?? 0;
    if (step > 0 && kept > room) break;
  }
  return step;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
