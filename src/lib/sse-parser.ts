// Parses Server-Sent Events from chunks of bytes: eventsource-parser, with a bound on the length of an event.

import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";

/** Of one event, in UTF-16 units. */
const MAX_EVENT_LENGTH = 8 * 1024 * 1024;

export interface SseParser {
  /** Calls `onEvent` for each complete event, in order. Throws for an event that is too long, and the errors that `onEvent` throws. */
  push(chunk: Uint8Array): void;
}

export function sseParser(
  onEvent: (data: string, event: string) => void,
  maxLength = MAX_EVENT_LENGTH,
): SseParser {
  const decoder = new StringDecoder("utf8");
  // No `onError`: the parser would build an error for each unknown field, 6 s of work per MiB of a hostile stream.
  const parser = createParser({
    maxBufferSize: maxLength,
    onEvent: ({ data, event = "" }) => onEvent(data, event),
  });
  return {
    push(chunk) {
      parser.feed(decoder.write(chunk));
      try {
        // A parser over its bound stops silently, and throws only when it is fed again.
        parser.feed("");
      } catch (cause) {
        throw new Error(`A server-sent event is longer than ${maxLength} characters.`, { cause });
      }
    },
  };
}
