// Derives a title for a thread without one.

import { firstChars, visibleLine } from "../../lib/text.ts";
import type { Content, Message } from "../../protocol/message.ts";

const TITLE_CHARS = 60;
/** The maximum number of characters to read from a message. */
const READ_CHARS = 1_000;

/** Returns the first words of the user's first message that contains words, or undefined if none does. */
export function titleFrom(messages: readonly Message[]): string | undefined {
  for (const { role, content } of messages) {
    const words = role === "user" ? wordsOf(content) : "";
    if (words.length > TITLE_CHARS) return `${cut(words, TITLE_CHARS - 1)}…`;
    if (words !== "") return words;
  }
  return undefined;
}

function wordsOf(content: Content): string {
  const texts =
    typeof content === "string"
      ? [content]
      : content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return visibleLine(firstChars(texts.join(" ").trimStart(), READ_CHARS));
}

/** Cuts the words at the end of a word, unless that would drop more than half of them. */
function cut(words: string, length: number): string {
  const whole = words.slice(0, length + 1).lastIndexOf(" ");
  return firstChars(words, whole > length / 2 ? whole : length);
}
