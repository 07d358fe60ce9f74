// The lines that a user types, also while something else is shown.

import type { Interface } from "node:readline";

const PROMPT = "> ";
/** Past these the terminal waits. */
const MOST_AHEAD = 1000;

export interface Lines {
  /** Asks for a line, or takes one that was typed ahead. `undefined` when the input has ended. */
  next(): Promise<string | undefined>;
}

/** `terminal` must be open, and write to `output`. */
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
      // Not part of the prompt: a prompt of two rows is drawn over the row above it.
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
