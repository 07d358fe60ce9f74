// The title of a thread that has been given none.

import { firstChars } from "../../lib/text.ts";
import type { Content, Message } from "../../protocol/message.ts";

const TITLE_CHARS = 60;
/** How much of a message is looked at. */
const READ_CHARS = 1_000;

/** The first words of the first message of the user that has any; undefined when none has. */
export function titleFrom(messages: readonly Message[]): string | undefined {
  for (const { role, content } of messages) {
    const words = role === "user" ? wordsOf(content) : "";
    if (words.length > TITLE_CHARS) return `${cut(words, TITLE_CHARS - 1)}…`;
    if (words !== "") return words;
  }
  return undefined;
}

/** On one line, without what cannot be seen; joiners stay, which make letters and emoji. */
function wordsOf(content: Content): string {
  const texts =
    typeof content === "string"
      ? [content]
      : content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  return firstChars(texts.join(" ").trimStart(), READ_CHARS)
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .replaceAll(/[\p{Cf}--[\u{200c}\u{200d}]]/gv, "")
    .trim();
}

/** At the end of a word, unless that leaves out more than half. */
function cut(words: string, length: number): string {
  const whole = words.slice(0, length + 1).lastIndexOf(" ");
  return firstChars(words, whole > length / 2 ? whole : length);
}
