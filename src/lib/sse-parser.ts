// Parses Server-Sent Events from chunks of bytes and limits the length of an event.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

import { StringDecoder } from "node:string_decoder";

/** The maximum length of one event, in UTF-16 code units. */
const MAX_EVENT_LENGTH = 8 * 1024 * 1024;

export interface SseParser {
  /**
   * Calls `onEvent` for each complete event, in order. Throws for an event that is too long, and rethrows errors of
   * `onEvent`.
   */
  push(chunk: Uint8Array): void;
}

export interface SseOptions {
  readonly maxLength?: number;
  /** Called with each line that is neither a standard field nor a comment. By default, such lines are ignored. */
  readonly onOther?: (line: string) => void;
}

export function sseParser(
  onEvent: (data: string, event: string) => void,
  { maxLength = MAX_EVENT_LENGTH, onOther = () => {} }: SseOptions = {},
): SseParser {
  const decoder = new StringDecoder("utf8");
  const data: string[] = [];
  let length = 0;
  let event = "";

  const weigh = (added: number) => {
    length += added;
    if (length > maxLength) throw new Error(`A server-sent event is longer than ${maxLength} characters.`);
  };

  const dispatch = () => {
    const name = event;
    event = "";
    if (data.length === 0) return;
    const text = data.length === 1 ? (data[0] ?? "") : data.join("\n");
    data.length = 0;
    length = 0;
    onEvent(text, name);
  };

  const lines = lineSplitter((text, start, end) => {
    if (start === end) dispatch();
    else if (text.startsWith("data:", start)) addData(valueIn(text, start + 5, end));
    else other(text.slice(start, end));
  });

  const addData = (value: string) => {
    weigh(value.length + 1);
    data.push(value);
  };

  const other = (line: string) => {
    const [, field = line, value = ""] = /^([^:]*): ?(.*)$/s.exec(line) ?? [];
    if (field === "data") addData(value);
    else if (field === "event") event = value;
    else if (field !== "" && field !== "id" && field !== "retry") onOther(line);
  };

  return {
    push(chunk) {
      lines.push(decoder.write(chunk));
      if (length + lines.waiting > maxLength) weigh(lines.waiting);
    },
  };
}

const valueIn = (text: string, start: number, end: number) =>
  text.slice(text.charCodeAt(start) === SPACE && start < end ? start + 1 : start, end);

/** Calls `onLine` for each complete line. A line ends with `\r\n`, `\n` or `\r`. */
function lineSplitter(onLine: (text: string, start: number, end: number) => void) {
  /** The pieces of the incomplete line. They are joined only once, no matter how many there are. */
  const pieces: string[] = [];
  let waiting = 0;
  let isFirst = true;
  let endedInReturn = false;

  const finish = (text: string, start: number, end: number) => {
    if (pieces.length === 0) {
      onLine(text, start, end);
      return;
    }
    const line = pieces.join("") + text.slice(start, end);
    pieces.length = 0;
    waiting = 0;
    onLine(line, 0, line.length);
  };

  return {
    get waiting() {
      return waiting;
    },
    push(text: string) {
      if (text === "") return;
      let start = isFirst && text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0;
      if (endedInReturn && text.startsWith("\n")) start = 1;
      isFirst = false;
      const hasReturns = text.includes("\r");
      for (let at = nextEnd(text, start, hasReturns); at >= 0; at = nextEnd(text, start, hasReturns)) {
        finish(text, start, at);
        start = at + (text.charCodeAt(at) === RETURN && text.charCodeAt(at + 1) === LINE_FEED ? 2 : 1);
      }
      endedInReturn = hasReturns && text.endsWith("\r");
      if (start === text.length) return;
      pieces.push(text.slice(start));
      waiting += text.length - start;
    },
  };
}

const BYTE_ORDER_MARK = 0xfeff;
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const LINE_END = /[\r\n]/g;

/**
 * Returns the index of the next line end, or -1. Few servers send carriage returns, and searching for line feeds alone
 * is faster.
 */
function nextEnd(text: string, start: number, hasReturns: boolean): number {
  if (!hasReturns) return text.indexOf("\n", start);
  LINE_END.lastIndex = start;
  return LINE_END.exec(text)?.index ?? -1;
}
