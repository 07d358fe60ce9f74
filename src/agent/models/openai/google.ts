// What Google adds to OpenAI's protocol: thoughts are asked for by a field of its own, and a call comes with a signature of the
// thought behind it, without which Gemini does not take the call back.
// https://ai.google.dev/gemini-api/docs/thought-signatures

import type { Reasoning } from "../../core/message.ts";
import { effortOf } from "../effort.ts";
import { isKeepable } from "../reply.ts";

/** The field that asks for thoughts. From Gemini 3 on it takes a level in place of a budget. */
export function thinkingConfig(model: string, budget: number): object {
  const amount = /gemini-[12]\b/.test(model)
    ? { thinking_budget: budget }
    : { thinking_level: effortOf(budget) };
  return { extra_body: { google: { thinking_config: { ...amount, include_thoughts: true } } } };
}

/** What came with the calls of a reply, by their places. */
export type CallExtras = Readonly<Record<number, unknown>>;

/** In place of the signature of a call that another model made: the provider then checks none. */
const UNSIGNED = { google: { thought_signature: "skip_thought_signature_validator" } };

/** What goes back with the call at `index`. Of calls that were made together only the first is signed. */
export function callExtra(reasoning: readonly Reasoning[], index: number): { extra_content?: unknown } {
  const kept = reasoning[0]?.metadata?.calls;
  const extra_content = isKeepable(kept) ? kept[index] : undefined;
  if (extra_content !== undefined) return { extra_content };
  return index === 0 ? { extra_content: UNSIGNED } : {};
}

const Thought = /^<thought>|<\/thought>$/g;

/** Text of a thought without the tags around it. */
export const untagged = (text: string): string => text.replace(Thought, "");

/** The text after a thought begins with the tag that ends it. */
export const afterThought = (text: string): string => text.replace(/^<\/thought>/, "");

/** Whether a piece of text is a thought. */
export function isThought(extra: unknown): boolean {
  return isKeepable(extra) && isKeepable(extra.google) && extra.google.thought === true;
}
