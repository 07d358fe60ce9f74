// A console for an agent of one's own program: shows what it says, takes what the user types, asks what it asks.

import { createInterface, type Interface } from "node:readline";
import type { AgentHandle } from "../library/handle.ts";
import { answersTo, askingAt } from "./answering.ts";
import { renderer } from "./render.ts";

export interface ConsoleOptions {
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

/**
 * Resolves when the user enters an empty line or closes the input; a run that is at work then goes on. Ctrl-C stops a run
 * after its step, a second one at once.
 */
export async function runAtConsole(
  handle: AgentHandle,
  { input = process.stdin, output = process.stdout }: ConsoleOptions = {},
): Promise<void> {
  const terminal = createInterface({ input, output, prompt: "\n> " });
  const closed = new AbortController();
  terminal.once("close", () => closed.abort());
  // It listens from the beginning: the input may end while a run is shown.
  const lines = terminal[Symbol.asyncIterator]();
  const place = { handle, terminal, output, closed: closed.signal };
  try {
    await show(place);
    while (!closed.signal.aborted) {
      terminal.prompt();
      const line = await lines.next();
      if (line.done || line.value.trim() === "") break;
      await handle.send(line.value);
      await show(place);
    }
  } finally {
    terminal.close();
  }
}

interface Place {
  readonly handle: AgentHandle;
  readonly terminal: Interface;
  readonly output: NodeJS.WritableStream;
  /** Aborted when there is nobody to ask any more. */
  readonly closed: AbortSignal;
}

/** The run that the handle is at, and those with which it goes on once its questions are answered. */
async function show({ handle, terminal, output, closed }: Place): Promise<void> {
  const render = renderer();
  let presses = 0;
  const stop = () => void (presses++ === 0 ? handle.interrupt() : handle.cancel()).catch(() => {});
  for (;;) {
    terminal.on("SIGINT", stop);
    try {
      for await (const event of handle.events()) output.write(render(event));
    } finally {
      terminal.off("SIGINT", stop);
    }
    const asked = await handle.interrupts();
    const answers =
      asked.length > 0 && !closed.aborted ? await answersTo(asked, askingAt(terminal)) : undefined;
    if (!answers) return;
    await handle.answer(answers);
  }
}
