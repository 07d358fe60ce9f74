// Parses Server-Sent Events from a response body. The client has its own parser because it has no dependencies.

export interface Frame {
  readonly id?: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** The maximum length of one event, in characters. */
const MAX_LENGTH = 64 * 1024 * 1024;

/** Yields each frame when its blank line arrives and skips comments. Throws for an event longer than `maxLength`. */
export async function* frames(
  body: AsyncIterable<Uint8Array>,
  maxLength = MAX_LENGTH,
): AsyncGenerator<Frame, void, void> {
  let open: { id?: string; event?: string; data?: string } = {};
  let length = 0;
  for await (const line of lines(body, maxLength)) {
    if (line === "") {
      if (open.data !== undefined) yield { id: open.id, event: open.event || "message", data: open.data };
      open = {};
      length = 0;
      continue;
    }
    length += line.length;
    if (length > maxLength) throw tooLong(maxLength);
    const [, name, value = ""] = /^([^:]*)(?::[ ]?(.*))?$/su.exec(line) ?? [];
    if (name === "data") open.data = open.data === undefined ? value : `${open.data}\n${value}`;
    if (name === "event") open.event = value;
    if (name === "id" && !value.includes("\0")) open.id = value;
  }
}

/** Yields lines that end with LF, CR or CRLF. A CRLF can be split between two chunks. Drops an unfinished last line. */
async function* lines(
  body: AsyncIterable<Uint8Array>,
  maxLength: number,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let line = "";
  let endedWithCr = false;
  for await (const chunk of body) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === "") continue;
    if (endedWithCr && text.startsWith("\n")) text = text.slice(1);
    endedWithCr = text === "" ? false : text.endsWith("\r");
    const [first = "", ...more] = text.split(/\r\n|\n|\r/);
    line += first;
    if (line.length > maxLength) throw tooLong(maxLength);
    for (const next of more) {
      yield line;
      line = next;
    }
  }
}

const tooLong = (maxLength: number) =>
  new Error(`The server sent an event that is longer than ${maxLength} characters.`);
