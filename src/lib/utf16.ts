// Files in UTF-16 that begin with a byte order mark, as some programs of Windows write them.

export type Utf16 = "utf-16le" | "utf-16be";

/** The byte order of a file that begins with these bytes; undefined for any other encoding. */
export function utf16Of(start: Uint8Array): Utf16 | undefined {
  if (start[0] === 0xff && start[1] === 0xfe) return "utf-16le";
  return start[0] === 0xfe && start[1] === 0xff ? "utf-16be" : undefined;
}

/** The text with its byte order mark; undefined for bytes that are no whole characters. */
export function fromUtf16(bytes: Buffer, order: Utf16): string | undefined {
  if (bytes.length % 2 !== 0) return undefined;
  return (order === "utf-16le" ? bytes : Buffer.from(bytes).swap16()).toString("utf16le");
}

export function toUtf16(text: string, order: Utf16): Buffer {
  const bytes = Buffer.from(text, "utf16le");
  return order === "utf-16le" ? bytes : bytes.swap16();
}
