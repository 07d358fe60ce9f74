// Reads a small text file at a configured path. Limits the size of the file, and is never blocked by a pipe or device.

import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/** `fault` completes the sentence "The file …". */
export type TextRead = { readonly text: string } | { readonly fault: string; readonly isMissing: boolean };

/** Never throws. */
export async function readText(path: string, maxBytes: number): Promise<TextRead> {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) return refused("is not a file");
    const bytes = await readUpTo(maxBytes + 1, file);
    if (bytes.length > maxBytes) return refused(`is larger than ${maxBytes / 1024} KiB`);
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    return refused(reasonOf(error));
  }
}

const refused = (fault: string) => ({ fault, isMissing: fault === MISSING });

async function readUpTo(limit: number, file: FileHandle): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of file.createReadStream({ start: 0, end: limit - 1, autoClose: false }))
    chunks.push(chunk);
  return Buffer.concat(chunks);
}

const MISSING = "does not exist";

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: MISSING,
  ENOTDIR: MISSING,
  EACCES: "may not be read by this process",
  EISDIR: "is not a file",
  ERR_ENCODING_INVALID_ENCODED_DATA: "is not UTF-8 text",
};

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return REASONS[code] ?? `cannot be read (${code || "unknown reason"})`;
}
