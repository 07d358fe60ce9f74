// Detects the type of a file from its bytes, because its name may be wrong. Independent of the DOM.

/** The largest text to show and edit, in bytes. */
export const SHOWN_BYTES = 256 * 1024;
/** The largest image to show, in bytes. Larger images can only be downloaded. */
export const IMAGE_BYTES = 16 * 1024 * 1024;

/**
 * The types to show as images. The first bytes of the file, read as Latin-1, determine its type. All other types are
 * excluded, because browsers run scripts in some of them, such as SVG.
 */
const IMAGES: readonly (readonly [type: string, isOne: (start: string) => boolean])[] = [
  ["image/png", (start) => start.startsWith("\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (start) => start.startsWith("\xff\xd8\xff")],
  ["image/gif", (start) => start.startsWith("GIF87a") || start.startsWith("GIF89a")],
  ["image/webp", (start) => start.startsWith("RIFF") && start.slice(8, 12) === "WEBP"],
];

export type DecodedContent =
  /**
   * `lineEnd` is the line ending of all lines. It is undefined if line endings differ, because a text field would
   * change them.
   */
  | { readonly kind: "text"; readonly text: string; readonly lineEnd?: "\n" | "\r\n" }
  | { readonly kind: "image"; readonly type: string }
  | { readonly kind: "bytes" };

/** `bytes` is the file, or its beginning if `isWhole` is false. */
export function contentOf(bytes: Uint8Array, isWhole: boolean): DecodedContent {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const [type] = IMAGES.find(([, isOne]) => isOne(start)) ?? [];
  if (type !== undefined) return { kind: "image", type };
  const text = decoded(bytes, isWhole);
  if (text === undefined || text.includes("\0")) return { kind: "bytes" };
  const lineEnd = lineEndOf(text);
  return { kind: "text", text, ...(lineEnd && { lineEnd }) };
}

/** Returns undefined for bytes that are not UTF-8. The beginning of a file can end in the middle of a character. */
function decoded(bytes: Uint8Array, isWhole: boolean): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return undefined;
  }
}

function lineEndOf(text: string): "\n" | "\r\n" | undefined {
  if (!text.includes("\r")) return "\n";
  return /(^|[^\r])\n|\r(?!\n)/.test(text) ? undefined : "\r\n";
}

/** Text fields use only `\n`. */
export const toField = (text: string): string => text.replaceAll("\r\n", "\n");
export const fromField = (text: string, lineEnd: "\n" | "\r\n"): string =>
  lineEnd === "\n" ? text : text.replaceAll("\n", "\r\n");
