// Reads the lines that the user types, even while other output is shown.

import type { Interface } from "node:readline";

const PROMPT = "> ";
/** The maximum number of lines to keep. If the user types more lines, the terminal pauses. */
const MOST_AHEAD = 1000;

export interface Lines {
  /** Asks for a line, or returns one that was typed earlier. Returns `undefined` once the input has ended. */
  next(): Promise<string | undefined>;
}

/** `terminal` must be open and must write to `output`. */
export function linesAt(terminal: Interface, output: NodeJS.WritableStream): Lines {
  const ahead: string[] = [];
  let isOpen = true;
  let wake = () => {};
  terminal.setPrompt(PROMPT);
  terminal.on("line", (line) => {
    if (ahead.push(line) >= MOST_AHEAD) terminal.pause();
    wake();
  });
  terminal.once("close", () => {
    isOpen = false;
    wake();
  });
  return {
    async next() {
      // Separate from the prompt, because the terminal draws a two-row prompt over the row above it.
      output.write("\n");
      const typed = ahead.shift();
      if (typed !== undefined) {
        output.write(`${PROMPT}${typed}\n`);
        return typed;
      }
      if (!isOpen) return undefined;
      terminal.prompt();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      return ahead.shift();
    },
  };
}
