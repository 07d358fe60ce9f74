// The main thread's requests about an untrusted document, and the worker's answers.

/** Requests a `DocumentText`. */
export interface ReadJob {
  readonly kind: "html" | "pdf" | "text";
  readonly bytes: Uint8Array;
  /**
   * The charset that the server named. Defaults to the charset declared in the document, or else to UTF-8 or
   * Windows-1252.
   */
  readonly charset?: string | undefined;
  /** The address of the document, for its relative links. */
  readonly url: string;
}

/** Asks whether a robots.txt allows `agent` to read `url`. */
export interface RobotsJob {
  readonly kind: "robots";
  readonly text: string;
  readonly url: string;
  readonly agent: string;
}

export type Job = ReadJob | RobotsJob;

export interface DocumentText {
  readonly title: string;
  readonly text: string;
  /** True if the document has more text than `MAX_TEXT`, or more pages than were read. */
  readonly isCut: boolean;
}

export type JobReply = { readonly answer: DocumentText | boolean } | { readonly fault: string };

/** The maximum number of characters in a document's text. */
export const MAX_TEXT = 2_000_000;
const MAX_TITLE = 300;

export function documentText(title: string, text: string, isCut = false): DocumentText {
  const whole = text.toWellFormed();
  return {
    title: title.toWellFormed().replace(/\s+/g, " ").trim().slice(0, MAX_TITLE),
    text: whole.slice(0, MAX_TEXT),
    isCut: isCut || whole.length > MAX_TEXT,
  };
}

/** Thrown if the document cannot be read. The message completes "The document …". */
export class DocumentError extends Error {}
