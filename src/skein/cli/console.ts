// A console for an agent in a program: shows its events, sends the user's messages and asks its questions.

import { createInterface, type Interface } from "node:readline";
import type { AgentHandle } from "../library/handle.ts";
import { answersTo, asked, askingAt } from "./answering.ts";
import { linesAt } from "./lines.ts";
import { paintFor } from "./paint.ts";
import { renderer } from "./render.ts";

export interface ConsoleOptions {
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

/**
 * Returns when the user enters an empty line or closes the input. An active run continues. The first Ctrl-C stops a run
 * after its step, and the second stops it at once.
 */
export async function runAtConsole(
  handle: AgentHandle,
  { input = process.stdin, output = process.stdout }: ConsoleOptions = {},
): Promise<void> {
  const terminal = createInterface({ input, output });
  const closed = new AbortController();
  terminal.once("close", () => closed.abort());
  // Created first, because the input may end while a run is being shown.
  const lines = linesAt(terminal, output);
  const console = { handle, terminal, output, closed: closed.signal };
  try {
    await show(console);
    while (!closed.signal.aborted) {
      const line = await lines.next();
      if (line === undefined || line.trim() === "") break;
      await handle.send(line);
      await show(console);
    }
  } finally {
    terminal.close();
  }
}

interface Console {
  readonly handle: AgentHandle;
  readonly terminal: Interface;
  readonly output: NodeJS.WritableStream;
  /** Aborted when the terminal is closed. */
  readonly closed: AbortSignal;
}

/** Shows the most recent run, and the runs that resume it after the user's answers. */
async function show({ handle, terminal, output, closed }: Console): Promise<void> {
  const paint = paintFor(output);
  const render = renderer(paint);
  let presses = 0;
  const stop = () => void (presses++ === 0 ? handle.interrupt() : handle.cancel()).catch(() => {});
  for (;;) {
    terminal.on("SIGINT", stop);
    try {
      for await (const event of handle.events()) output.write(render(event));
    } finally {
      terminal.off("SIGINT", stop);
    }
    const open = await handle.interrupts();
    if (open.length === 0) return;
    if (closed.aborted) {
      // No one can answer here, so print the open questions.
      for (const each of open) output.write(`${asked(each, paint)}\n`);
      return;
    }
    const answers = await answersTo(open, { ask: askingAt(terminal), paint });
    if (!answers) return;
    await handle.answer(answers);
  }
}
