// The reasons why replies end. One list contains the words of all dialects, because gateways translate between them incompletely.

import { firstChars } from "../../../lib/text.ts";
import type { StopReason } from "../../core/model.ts";
import { textIn } from "../reply.ts";

/** `failed`: the provider gave up during the reply, and a retry may succeed. */
type End = StopReason | "failed";

/** The reasons, most severe first. If a server sends several reasons, the most severe reason is used. */
const WORDS: readonly (readonly [End, readonly string[]])[] = [
  [
    "failed",
    [
      ...["error", "network_error", "server_error", "internal_error", "model_error", "api_error", "failed"],
      ...[
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "timeout",
        "time_limit",
        "interrupted",
        "disconnected",
      ],
      ...["overloaded", "engine_overloaded", "insufficient_system_resource", "rate_limit"],
      // Gemini withdraws a malformed call without further explanation. A retry usually produces a valid call.
      ...["function_call_filter", "malformed_function_call", "malformed_response", "unexpected_tool_call"],
    ],
  ],
  [
    "refusal",
    [
      ...["content_filter", "content_filtered", "refusal", "refused", "sensitive", "safety", "recitation"],
      ...["prohibited_content", "blocklist", "spii", "language", "image_safety", "guardrail_intervened"],
      ...["moderation", "policy_violation"],
    ],
  ],
  [
    "max_tokens",
    [
      ...[
        "length",
        "max_tokens",
        "model_length",
        "max_output_tokens",
        "max_completion_tokens",
        "token_limit",
      ],
      ...["model_context_window_exceeded", "context_length_exceeded", "max_length", "incomplete"],
    ],
  ],
  ["tool_use", ["tool_calls", "tool_call", "tool_use", "function_call", "function_calls", "toolcalls"]],
  ["stop_sequence", ["stop_sequence"]],
  [
    "end_turn",
    // `pause_turn` concerns the provider's own tools. The client for Anthropic continues such a reply.
    [
      "stop",
      "end_turn",
      "eos",
      "eos_token",
      "end",
      "done",
      "complete",
      "completed",
      "finished",
      "pause_turn",
    ],
  ],
];

const ENDS: ReadonlyMap<string, End> = new Map(
  WORDS.flatMap(([end, words]) => words.map((word) => [word, end] as const)),
);
const GRAVITY = WORDS.map(([end]) => end);

export interface EndReader {
  /** Adds a reason from the provider, which may arrive once or with each piece. */
  take(reason: unknown): void;
  /** The provider's word for the most severe reason. */
  readonly word: string | undefined;
  readonly end: End | undefined;
  /** True if no list contains the provider's word. */
  readonly isUnknown: boolean;
}

export function endReader(): EndReader {
  let said: string | undefined;
  let end: End | undefined;
  let isUnknown = false;
  return {
    take(reason) {
      const word = textIn(reason).trim();
      if (word === "" || word === "null") return;
      const known = ENDS.get(plain(word));
      const next = known ?? "end_turn";
      if (end !== undefined && GRAVITY.indexOf(end) <= GRAVITY.indexOf(next)) return;
      [said, end, isUnknown] = [firstChars(word, MAX_LENGTH), next, known === undefined];
    },
    get word() {
      return said;
    },
    get end() {
      return end;
    },
    get isUnknown() {
      return isUnknown;
    },
  };
}

const MAX_LENGTH = 100;

/** Normalizes a word, such as `STOP` or `tool-calls`. Removes details that Google adds after a colon. */
const plain = (word: string) => (word.split(":", 1)[0] ?? "").toLowerCase().replace(/[\s-]+/g, "_");
