// Decodes a document from the web. Its charset may come from its server, from its first bytes, or from neither.

import { isUtf8 } from "node:buffer";

/** The number of bytes at the beginning of a document in which HTML and XML declare their charset. */
const BEGINNING = 1024;

export function decoded(bytes: Uint8Array, charset: string | undefined): string {
  const label =
    byteOrderMark(bytes) ?? charset ?? declared(bytes) ?? (isUtf8(bytes) ? "utf-8" : "windows-1252");
  return decoderOf(label).decode(bytes);
}

function decoderOf(label: string) {
  try {
    return new TextDecoder(label);
  } catch (error) {
    // Some servers name charsets that do not exist.
    if (error instanceof RangeError) return new TextDecoder();
    throw error;
  }
}

function byteOrderMark([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return undefined;
}

function declared(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, BEGINNING)).toString("latin1");
  const [, label] =
    /<meta\s[^>]*charset\s*=\s*["']?([\w:.-]+)|^<\?xml\s[^>]*encoding\s*=\s*["']([\w:.-]+)/i
      .exec(start)
      ?.filter((group) => group !== undefined) ?? [];
  // The declaration could be read, so the text cannot be UTF-16.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}
