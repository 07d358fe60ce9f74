// Starts a run and prints its events as they arrive. If the connection breaks or falls silent, the client resumes it at
// the last event, so no event is missed or repeated. If the server is unreachable, the client retries until it is back.
// Ctrl-C stops the run, and a second Ctrl-C ends the program.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/follow-a-run/main.ts "Hello, what can you do?"
// Test it:  npm test -- test/examples/follow-a-run.test.ts

import { createClient, ProblemError, type StreamEvent } from "../../src/client/client.ts";

export interface Options {
  readonly url: string;
  readonly thread: string;
  readonly input: string;
  readonly print: (text: string) => void;
  /** Stops the run, and stops following it. */
  readonly signal?: AbortSignal;
}

/** Returns the run's last event. Throws `ProblemError` if the server refuses. */
export async function followARun({ url, thread, input, print, signal }: Options): Promise<StreamEvent> {
  const client = createClient({
    baseUrl: url,
    // Reports only the third attempt, because short interruptions are common.
    onRetry: (reason, attempt) => attempt === 3 && print(`! ${reason.message} Trying again.\n`),
  });
  let last: StreamEvent | undefined;
  for await (const event of client.run(thread, { input })) {
    print(textOf(event));
    last = event;
    const runId = event.event === "run_start" ? event.run_id : undefined;
    if (runId && signal) onAbort(signal, () => void client.stop(thread, runId).catch(() => {}));
  }
  if (!last) throw new Error("The run had ended, and its events are no longer kept.");
  return last;
}

function textOf(event: StreamEvent): string {
  switch (event.event) {
    case "on_chat_model_stream":
      return "delta" in event.data ? event.data.delta : "";
    case "on_chat_model_end":
      return "\n";
    case "on_tool_start":
      return `→ ${event.name} ${JSON.stringify(event.data.args).slice(0, 100)}\n`;
    case "on_tool_progress":
      return event.data.output;
    case "on_tool_end":
      return event.data.error === undefined ? `✓ ${event.name}\n` : `✗ ${event.data.error}\n`;
    case "message_discard":
      return "\n(the server was restarted; what follows replaces the unfinished text)\n";
    case "warning":
      return `! ${event.data.message}\n`;
    case "error":
      return `✗ ${event.data.message} (${event.data.code})\n`;
    case "done":
      return `(${event.data.status}: ${event.data.usage.output_tokens} tokens)\n`;
    default:
      return "";
  }
}

function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener("abort", act, { once: true });
}

if (import.meta.main) {
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  try {
    const last = await followARun({
      url: process.env.SKEIN_URL ?? "http://127.0.0.1:8000",
      thread: process.env.THREAD ?? `th_${crypto.randomUUID()}`,
      input: process.argv[2] ?? "Hello, what can you do?",
      print: (text) => process.stdout.write(text),
      signal: interrupted.signal,
    });
    process.exitCode = last.event === "done" && last.data.status === "success" ? 0 : 1;
  } catch (error) {
    console.error(error instanceof ProblemError ? `${error.code}: ${error.message}` : `No answer: ${error}`);
    process.exitCode = 1;
  }
}
