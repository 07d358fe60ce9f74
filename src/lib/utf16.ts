// Handles UTF-16 files that begin with a byte order mark, as some Windows programs write them.

export type Utf16 = "utf-16le" | "utf-16be";

/** Returns the byte order of a file that begins with these bytes, or undefined for any other encoding. */
export function utf16Of(start: Uint8Array): Utf16 | undefined {
  if (start[0] === 0xff && start[1] === 0xfe) return "utf-16le";
  return start[0] === 0xfe && start[1] === 0xff ? "utf-16be" : undefined;
}

/** Returns the text with its byte order mark, or undefined if the bytes end within a character or are invalid. */
export function fromUtf16(bytes: Buffer, order: Utf16): string | undefined {
  if (bytes.length % 2 !== 0) return undefined;
  return (order === "utf-16le" ? bytes : Buffer.from(bytes).swap16()).toString("utf16le");
}

export function toUtf16(text: string, order: Utf16): Buffer {
  const bytes = Buffer.from(text, "utf16le");
  return order === "utf-16le" ? bytes : bytes.swap16();
}
