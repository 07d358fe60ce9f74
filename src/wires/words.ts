// What waits for an answer, and the answer, in words: for clients that have nothing else to ask with.

import { decisionIn } from "../protocol/approval-words.ts";
import type { Answer, Interrupt } from "../protocol/interrupt.ts";

/** What a user's words answer. Approvals take a word; questions take any text. Nothing: the words are a new message. */
export function answersInWords(text: string, open: readonly Interrupt[]): Answer[] {
  const decision = decisionIn(text);
  return open.flatMap(({ id, kind, options = [], one_of_options }): Answer[] => {
    if (kind === "approval") return decision ? [{ id, decision }] : [];
    if (kind === "tool") return [];
    const option = options.find((each) => each.toLowerCase() === text.trim().toLowerCase());
    if (one_of_options && option === undefined) return [];
    return [{ id, decision: "respond", message: option ?? text }];
  });
}

interface Asking {
  readonly prompt: string;
  readonly options?: readonly string[] | undefined;
}

/** A question as words, with what may be answered. */
export const questionText = ({ prompt, options = [] }: Asking) =>
  [prompt, ...options.map((option) => `- ${option}`)].join("\n");

export const approvalText = ({ prompt }: Asking) => `${prompt}\n\nReply “approve” or “deny”.`;
