// Text for a terminal: escaped, and styled where the terminal shows it.

// By its name alone an old Node would refuse it before lib/node-version.ts can say what is wrong.
import * as util from "node:util";

/**
 * Escapes control and format characters, so that text from models, tools and servers cannot move the cursor, hide or reorder
 * what is shown, or reach the clipboard. It works on each character alone: a sequence split between two texts is escaped as
 * well. Line breaks and tabs stay, and the joiners that emoji and some scripts are written with.
 */
export const visible = (text: string) =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{C}\n\t\u200c\u200d]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`);

/** Returns the text escaped as by `visible`, and styled. */
export type Paint = (style: Parameters<typeof util.styleText>[0], text: string) => string;

/** Styles only when `stream` is a terminal with colours and `NO_COLOR` is not set. A line break at the end is not styled. */
export const paintFor =
  (stream: NodeJS.WritableStream): Paint =>
  (style, text) => {
    const [, line = "", end = ""] = /^(.*?)(\n*)$/su.exec(visible(text)) ?? [];
    return (line && util.styleText(style, line, { stream })) + end;
  };
