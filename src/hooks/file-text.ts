// A text file of the agent's, for a prompt.

import type { Backend } from "../core/backend.ts";
import { AppError } from "../core/errors.ts";

export interface FileText {
  /** Decoded as UTF-8, with `\n` line ends and without a byte order mark. */
  readonly text: string;
  /** True when the file goes on. */
  readonly truncated: boolean;
}

/** The first `limit` bytes of a file; undefined when there is none. Throws what else the backend throws. */
export async function fileText(
  backend: Backend,
  path: string,
  limit: number,
  signal: AbortSignal,
): Promise<FileText | undefined> {
  const chunks: Uint8Array[] = [];
  try {
    // One byte more tells whether the file goes on.
    for await (const chunk of backend.read(path, { length: limit + 1 }, signal)) chunks.push(chunk);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return undefined;
    throw error;
  }
  const bytes = Buffer.concat(chunks);
  // `stream` leaves out a character that the limit cut in two.
  const text = new TextDecoder().decode(bytes.subarray(0, limit), { stream: true });
  return { text: text.replaceAll("\r\n", "\n"), truncated: bytes.length > limit };
}
