// Escapes text for a terminal and styles it if the terminal supports that.

// A named import would fail on an old Node before lib/node-version.ts can report the version.
import * as util from "node:util";

/**
 * Escapes control and format characters, so text from models, tools and servers cannot move the cursor, hide or reorder
 * output, or reach the clipboard. Each character is handled on its own, so a sequence that is split between two texts
 * is escaped too. Keeps line breaks and tabs, and the joiners used in emoji and some scripts.
 */
export const visible = (text: string) =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{C}\n\t\u200c\u200d]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** Returns the text, escaped as in `visible`, with a style. */
export type Paint = (style: Parameters<typeof util.styleText>[0], text: string) => string;

/** Adds styles only if `stream` is a terminal with colours and `NO_COLOR` is not set. A final line break gets no style. */
export const paintFor =
  (stream: NodeJS.WritableStream): Paint =>
  (style, text) => {
    const [, line = "", end = ""] = /^(.*?)(\n*)$/su.exec(visible(text)) ?? [];
    return (line && util.styleText(style, line, { stream })) + end;
  };
