// Google's additions to OpenAI's protocol. A separate field requests thoughts. A call includes a signature of its thought, and
// Gemini rejects the call in later requests without it. https://ai.google.dev/gemini-api/docs/thought-signatures

import type { Reasoning } from "../../core/message.ts";
import { effortOf } from "../effort.ts";
import { isKeepable } from "../reply.ts";

/**
 * Returns the field that requests thoughts. From Gemini 3 on, the field accepts a level instead of a budget.
 */
export function thinkingConfig(model: string, budget: number): object {
  const amount = /gemini-[12]\b/.test(model)
    ? { thinking_budget: budget }
    : { thinking_level: effortOf(budget) };
  return { extra_body: { google: { thinking_config: { ...amount, include_thoughts: true } } } };
}

/** The extra data of the calls in a reply, by position. */
export type CallExtras = Readonly<Record<number, unknown>>;

/** Replaces the signature of a call that another model made. This value turns off the provider's check. */
const UNSIGNED = { google: { thought_signature: "skip_thought_signature_validator" } };

/**
 * Returns the extra data to send back with the call at `index`. Only the first of several parallel calls is
 * signed.
 */
export function callExtra(reasoning: readonly Reasoning[], index: number): { extra_content?: unknown } {
  const kept = reasoning[0]?.metadata?.calls;
  const extra_content = isKeepable(kept) ? kept[index] : undefined;
  if (extra_content !== undefined) return { extra_content };
  return index === 0 ? { extra_content: UNSIGNED } : {};
}

const Thought = /^<thought>|<\/thought>$/g;

/** Returns the text of a thought without its tags. */
export const untagged = (text: string): string => text.replace(Thought, "");

/** Removes the closing tag at the beginning of the text that follows a thought. */
export const afterThought = (text: string): string => text.replace(/^<\/thought>/, "");

/** True if a piece of text is a thought. */
export function isThought(extra: unknown): boolean {
  return isKeepable(extra) && isKeepable(extra.google) && extra.google.thought === true;
}
