// The messages between the page and the frame that draws a diagram. Independent of the DOM.

/** Sent by the page: the source of the diagram and its label. */
export interface Drawing {
  readonly source: string;
  readonly theme: "light" | "dark";
  /** The text for screen readers. */
  readonly label: string;
  /** The language of `label`, such as `en`. */
  readonly language: string;
}

/** Sent by the frame. `ready`: it can receive messages. `drawn`: sent again whenever the height changes. */
export type FrameReply =
  | { readonly kind: "ready" }
  | { readonly kind: "drawn"; readonly height: number }
  | ({ readonly kind: "failed" } & FrameFailure);

/** Why the diagram could not be drawn. */
export interface FrameFailure {
  readonly why: "unknown" | "unreadable";
  /** The line of the source, starting at 1. */
  readonly line?: number | undefined;
  /** The library's error message, in English. */
  readonly message: string;
}

/** The maximum length of the source. Drawing a longer one would take too long. */
export const MOST_CHARACTERS = 10_000;
/** The maximum length of a line. The layout time of a label grows with the square of its length. */
export const MOST_IN_LINE = 500;

/** The maximum number of lines. The layout time grows faster than the number of boxes. */
export const MOST_LINES = 200;

/** Matches diagrams whose source contains a number that would create too many boxes. */
const TOO_MANY_BOXES = /^\s*(?:block(?:-beta)?\s*$[\s\S]*[:\s]\d{3}|packet(?:-beta)?\s*$[\s\S]*\b\d{5})/m;

export function isTooLarge(source: string): boolean {
  const lines = source.split("\n");
  return (
    source.length > MOST_CHARACTERS ||
    lines.length > MOST_LINES ||
    lines.some((line) => line.length > MOST_IN_LINE) ||
    TOO_MANY_BOXES.test(source)
  );
}

const MOST_OF_MESSAGE = 600;

/** Returns undefined for an invalid message. The frame is not trusted, because anyone may have written its source. */
export function replyOf(data: unknown): FrameReply | undefined {
  if (typeof data !== "object" || data === null) return undefined;
  const { kind, height, why, line, message } = data as Readonly<Record<string, unknown>>;
  if (kind === "ready") return { kind };
  if (kind === "drawn" && isCount(height)) return { kind, height };
  if (kind === "failed" && typeof message === "string")
    return {
      kind,
      why: why === "unknown" ? why : "unreadable",
      line: isCount(line) ? line : undefined,
      message: message.slice(0, MOST_OF_MESSAGE),
    };
  return undefined;
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isInteger(value) && value > 0;
