// Where a conversation may be cut in two.

import type { Message } from "../../core/message.ts";
import { estimateTokens, unanswered } from "../../core/messages.ts";

const MIN_KEPT = 2;

/**
 * How many messages from the beginning may go into a summary; 0 when there is no place to cut. At least two,
 * and the part `keep` of all, stay as they are, or fewer when they take more than `room` tokens. No call is
 * parted from its results. Between two turns is better than in the middle of a long one.
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
