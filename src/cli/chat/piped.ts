// What is piped into a command.

import { fstatSync } from "node:fs";
import { AppError } from "../../core/errors.ts";

const LONGEST_BYTES = 16 * 1024 * 1024;

/**
 * The text of stdin, to its end; `undefined` at a terminal, from `/dev/null` and without a stdin. Throws `invalid_request`
 * when it is too long or no text.
 */
export async function pipedText(): Promise<string | undefined> {
  if (!isPipe()) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LONGEST_BYTES)
      throw new AppError("invalid_request", `The input is longer than ${LONGEST_BYTES} bytes.`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new AppError("invalid_request", "The input is not UTF-8 text.", { cause });
  }
}

function isPipe(): boolean {
  try {
    // A terminal and `/dev/null` are character devices.
    return !fstatSync(0).isCharacterDevice();
  } catch {
    return false;
  }
}
