// Open questions and their answers as text, for clients that have no other way to ask.

import { decisionIn } from "../protocol/approval-words.ts";
import { type Answer, asksToApprove, type Interrupt, promptText } from "../protocol/interrupt.ts";

/**
 * Returns the answers in a user's text. An approval needs a word of agreement or refusal, while questions accept any
 * text. Empty if the text is a new message.
 */
export function answersInWords(text: string, open: readonly Interrupt[]): Answer[] {
  const decision = decisionIn(text);
  return open.flatMap(({ id, kind, options = [], one_of_options }): Answer[] => {
    if (asksToApprove(kind)) return decision ? [{ id, decision }] : [];
    if (kind === "tool") return [];
    const option = options.find((each) => each.toLowerCase() === text.trim().toLowerCase());
    if (one_of_options && option === undefined) return [];
    return [{ id, decision: "respond", message: option ?? text }];
  });
}

interface AskedQuestion {
  readonly prompt: string;
  readonly url?: string | undefined;
  readonly options?: readonly string[] | undefined;
}

/** Returns a question as text, with its options. */
export const questionText = ({ options = [], ...asked }: AskedQuestion) =>
  [promptText(asked), ...options.map((option) => `- ${option}`)].join("\n");

export const approvalText = (asked: AskedQuestion) => `${promptText(asked)}\n\nReply “approve” or “deny”.`;
