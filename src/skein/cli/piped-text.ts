// Reads the text that another program or a file writes to the command.

import { fstatSync } from "node:fs";
import { AppError } from "../../agent/core/errors.ts";
import { t } from "./texts.ts";

const LONGEST_BYTES = 16 * 1024 * 1024;

/**
 * Reads stdin to its end. Returns `undefined` at a terminal, from `/dev/null` and without stdin. Throws
 * `invalid_request` if the input is too long or is not text.
 */
export async function pipedText(): Promise<string | undefined> {
  if (!isPipe()) return undefined;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LONGEST_BYTES) throw new AppError("invalid_request", t().chat.longInput(LONGEST_BYTES));
    chunks.push(chunk);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new AppError("invalid_request", t().chat.noText, { cause });
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
