// Builds a reply. The reader of each dialect adds text, thoughts, calls, counts and the end. It then receives the
// complete reply.

import type { StreamEvent } from "../../../protocol/event.ts";
import type { Reasoning } from "../../core/message.ts";
import type { ModelReply, Remark, StopReason } from "../../core/model.ts";
import { ProviderError, refused } from "../failure.ts";
import { textIn } from "../reply.ts";
import { type CallPiece, callList } from "./calls.ts";
import { type Counter, counter } from "./counts.ts";
import { type EndReader, endReader } from "./stop-reasons.ts";
import { wholeCharacters } from "./whole-characters.ts";

/**
 * The maximum number of characters of text, thoughts and arguments in one reply. This is several times the
 * length of the longest replies that models give, but fits into the memory of a small process.
 */
const MAX_REPLY_CHARS = 8 * 1024 * 1024;

export interface Draft {
  readonly text: string;
  /** The number of characters so far, including those of the parts before this one. */
  readonly length: number;
  readonly counts: Counter;
  readonly ending: EndReader;
  readonly callCount: number;
  say(words: unknown, out: StreamEvent[]): void;
  think(thought: Thought, words: unknown, out: StreamEvent[]): void;
  /** Adds a piece of a call. Returns the number of the call, once it has a name. */
  call(piece: CallPiece, out: StreamEvent[]): number | undefined;
  /** Counts other content towards the maximum length of a reply. */
  weigh(words: string): void;
  /** Records that the model declined to answer in its own words. */
  refuse(): void;
  /** Records that the provider has announced the end. */
  close(): void;
  readonly isClosed: boolean;
  /**
   * Returns the reply after its stream has ended cleanly. Throws `ProviderError` for a reply that was cut off
   * or withdrawn by the provider.
   */
  finish(reasoning: () => readonly Reasoning[], out: StreamEvent[]): ModelReply;
}

export interface Thought {
  readonly text: string;
  take(words: string): string;
}

/** Returns a thought whose pieces are still arriving. */
export function openThought(): Thought {
  let text = "";
  const whole = wholeCharacters();
  return {
    get text() {
      return text;
    },
    take(words) {
      const news = whole(words);
      text += news;
      return news;
    },
  };
}

/** `before` is the number of characters in the parts of the reply before this one. */
export function replyDraft(before = 0): Draft {
  const said = openThought();
  const calls = callList();
  const counts = counter();
  const end = endReader();
  let isClosed = false;
  let isRefused = false;
  let length = before;

  const weigh = (words: string) => {
    length += words.length;
    if (length > MAX_REPLY_CHARS) throw refused(`the reply is longer than ${MAX_REPLY_CHARS} characters`);
    return words;
  };

  /** Without a stop reason, the reply is complete only if the stream ended cleanly after complete content. */
  const isWhole = () =>
    end.end !== undefined || (isClosed && calls.areWhole && (said.text !== "" || calls.count > 0));

  const stopOf = (): StopReason => {
    if (!isWhole()) throw new ProviderError(CUT);
    if (end.end === "failed") throw withdrawn(end.word ?? "");
    return isRefused ? "refusal" : (end.end ?? "end_turn");
  };

  return {
    get text() {
      return said.text;
    },
    get length() {
      return length;
    },
    counts,
    ending: end,
    get callCount() {
      return calls.count;
    },
    say(words, out) {
      const delta = said.take(weigh(textIn(words)));
      if (delta !== "") out.push({ event: "on_chat_model_stream", data: { delta } });
    },
    think(thought, words, out) {
      const reasoning_delta = thought.take(weigh(textIn(words)));
      if (reasoning_delta !== "") out.push({ event: "on_chat_model_stream", data: { reasoning_delta } });
    },
    call(piece, out) {
      weigh(textIn(piece.args));
      return calls.take(piece, out);
    },
    weigh(words) {
      weigh(words);
    },
    refuse() {
      isRefused = true;
    },
    close() {
      isClosed = true;
    },
    get isClosed() {
      return isClosed;
    },
    finish(reasoning, out) {
      const stop = stopOf();
      const made = calls.settle(stop, out);
      // Calls in a reply that the provider withdrew are not executed.
      const tool_calls = stop === "refusal" ? [] : made;
      // Some servers report the end of the turn although they made calls.
      const stop_reason = stop === "end_turn" && tool_calls.length > 0 ? "tool_use" : stop;
      const remark = end.isUnknown ? { remark: unknownReason(end.word ?? "") } : {};
      return {
        ...{ content: said.text, tool_calls, reasoning: reasoning(), stop_reason, usage: counts.usage },
        ...remark,
      };
    },
  };
}

const unknownReason = (word: string): Remark => ({
  code: "unknown_stop_reason",
  message: `ended a reply for an unknown reason, ${JSON.stringify(word)}. It counts as the end of the turn.`,
});

const CUT = "the stream ended before the reply did";

const withdrawn = (reason: string) =>
  new ProviderError("the provider withdrew the reply", {
    body: { code: 503, message: `The model's reply was withdrawn (${reason}).` },
  });
