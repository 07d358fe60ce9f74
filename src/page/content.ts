// The type of a file's content, told from its bytes: its name may claim anything. No DOM.

/** The most that is shown, and that can be edited. */
export const SHOWN_BYTES = 256 * 1024;
/** A larger image is downloaded instead. */
export const IMAGE_BYTES = 16 * 1024 * 1024;

/** Only these are shown as images: browsers run scripts in others, such as SVG. By the first bytes, as Latin-1. */
const IMAGES: readonly (readonly [type: string, isOne: (start: string) => boolean])[] = [
  ["image/png", (start) => start.startsWith("\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (start) => start.startsWith("\xff\xd8\xff")],
  ["image/gif", (start) => start.startsWith("GIF87a") || start.startsWith("GIF89a")],
  ["image/webp", (start) => start.startsWith("RIFF") && start.slice(8, 12) === "WEBP"],
];

export type Content =
  /** `lineEnd`: of all its lines; absent when they differ, and the text would not survive a text field. */
  | { readonly kind: "text"; readonly text: string; readonly lineEnd?: "\n" | "\r\n" }
  | { readonly kind: "image"; readonly type: string }
  | { readonly kind: "bytes" };

/** `bytes` is the file, or its beginning if it is not whole. */
export function contentOf(bytes: Uint8Array, isWhole: boolean): Content {
  const start = String.fromCharCode(...bytes.subarray(0, 16));
  const [type] = IMAGES.find(([, isOne]) => isOne(start)) ?? [];
  if (type !== undefined) return { kind: "image", type };
  const text = decoded(bytes, isWhole);
  if (text === undefined || text.includes("\0")) return { kind: "bytes" };
  const lineEnd = lineEndOf(text);
  return { kind: "text", text, ...(lineEnd && { lineEnd }) };
}

/** Undefined for what is no UTF-8. A beginning may end in the middle of a character. */
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

/** A text field knows only `\n`. */
export const toField = (text: string): string => text.replaceAll("\r\n", "\n");
export const fromField = (text: string, lineEnd: "\n" | "\r\n"): string =>
  lineEnd === "\n" ? text : text.replaceAll("\n", "\r\n");
