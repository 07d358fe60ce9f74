// A stream of bytes as lines, in bounded memory.

const NEWLINE = 0x0a;

/** Without their ends. What has no end when the stream ends is left out. Throws for a longer line. */
export async function* linesOf(bytes: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<string> {
  let held: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const line = chunk.subarray(start, end);
      if (size + line.length > maxBytes) throw tooLong(maxBytes);
      yield (size > 0 ? Buffer.concat([...held, line]) : line).toString("utf8");
      held = [];
      size = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    held.push(chunk.subarray(start));
    size += chunk.length - start;
    if (size > maxBytes) throw tooLong(maxBytes);
  }
}

const tooLong = (maxBytes: number) => new Error(`A message is longer than ${maxBytes} bytes.`);
