// What the page and the frame that draws say to each other. No DOM.

/** From the page: what to draw, and how it is named. */
export interface Drawing {
  readonly source: string;
  readonly theme: "light" | "dark";
  /** For screen readers. */
  readonly label: string;
  /** Language of `label`, such as `en`. */
  readonly language: string;
}

/** From the frame. `ready`: it listens. `drawn`: again whenever its height changes. */
export type Reply =
  | { readonly kind: "ready" }
  | { readonly kind: "drawn"; readonly height: number }
  | ({ readonly kind: "failed" } & Failure);

/** Why there is no diagram. */
export interface Failure {
  readonly why: "unknown" | "unreadable";
  /** Line of the source, counted from 1. */
  readonly line?: number | undefined;
  /** What the library says, in English. */
  readonly message: string;
}

/** A larger source would take too long. */
export const MOST_CHARACTERS = 10_000;
/** The time to lay out a label grows with the square of its length. */
export const MOST_IN_LINE = 500;

/** The time to arrange boxes grows faster than their number. */
export const MOST_LINES = 200;

/** In these kinds a number is an amount of boxes. */
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

/** Undefined for what is no reply: the frame has read a source that anyone may have written. */
export function replyOf(data: unknown): Reply | undefined {
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
