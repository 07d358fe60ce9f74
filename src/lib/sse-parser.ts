// Server-sent events out of bytes that come in pieces. The pieces may end anywhere: in a line, in a CRLF, in
// a character. An event is handed on the moment its blank line is read; what has none at the end is not.

import { StringDecoder } from "node:string_decoder";

/** In UTF-16 units, for one event. More than that is an error: nobody sends it in good faith. */
const MAX_EVENT_LENGTH = 8 * 1024 * 1024;

export interface SseParser {
  /** Calls `onEvent` for each event that is now complete, in order. Throws what it throws, or for an endless event. */
  push(chunk: Uint8Array): void;
}

export function sseParser(
  onEvent: (data: string, event: string) => void,
  maxLength = MAX_EVENT_LENGTH,
): SseParser {
  const decoder = new StringDecoder("utf8");
  /** The beginning of a line whose end has not come yet, in pieces: joined once, so a long line costs no more than its length. */
  let held: string[] = [];
  let heldLength = 0;
  let first = true;
  let event = "";
  let data: string | undefined;

  const check = (length: number) => {
    if (length > maxLength) throw new Error(`A server-sent event is longer than ${maxLength} characters.`);
  };

  const hold = (text: string) => {
    if (text === "") return;
    held.push(text);
    heldLength += text.length;
    check(heldLength);
  };

  const line = (text: string, start: number, end: number) => {
    if (start === end) {
      const complete = data;
      const name = event;
      data = undefined;
      event = "";
      if (complete !== undefined) onEvent(complete, name);
    } else if (text.startsWith("data", start)) {
      const value = fieldValue(text, start + 4, end);
      if (value === undefined) return;
      data = data === undefined ? value : `${data}\n${value}`;
      check(data.length);
    } else if (text.startsWith("event", start)) {
      event = fieldValue(text, start + 5, end) ?? event;
    }
  };

  return {
    push(chunk) {
      let text = decoder.write(chunk);
      if (!text.includes("\n")) return hold(text);
      if (held.length > 0) {
        text = held.join("") + text;
        held = [];
        heldLength = 0;
      }
      let start = first && text.startsWith("\uFEFF") ? 1 : 0;
      first = false;
      for (let end = text.indexOf("\n", start); end !== -1; end = text.indexOf("\n", start)) {
        line(text, start, end > start && text[end - 1] === "\r" ? end - 1 : end);
        start = end + 1;
      }
      hold(text.slice(start));
    },
  };
}

/** What stands behind the colon at `colon`, or nothing when another field's name goes on there. */
function fieldValue(text: string, colon: number, end: number): string | undefined {
  if (colon === end) return "";
  if (text[colon] !== ":") return undefined;
  return text.slice(text[colon + 1] === " " ? colon + 2 : colon + 1, end);
}
