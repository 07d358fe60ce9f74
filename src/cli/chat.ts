// `skein chat`: talk to a running server. Ctrl-C stops the run after its step, a second one at once; with no
// run it leaves.

import { createInterface, type Interface } from "node:readline/promises";
import { type Client, createClient, ProblemError } from "../client/client.ts";
import { newThreadId } from "../core/ids.ts";
import { render } from "./render.ts";

export interface ChatOptions {
  readonly url: string;
  readonly agent?: string;
  readonly thread?: string;
}

/** Resolves when the user leaves. */
export async function chat({ url, agent, thread = newThreadId() }: ChatOptions): Promise<void> {
  const client = createClient({ baseUrl: url });
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  process.stdout.write(`Thread ${thread} on ${url}. An empty line or Ctrl-C leaves.\n`);
  try {
    for await (const input of questions(terminal)) {
      const turn = client.run(thread, { input, ...(agent === undefined ? {} : { agent }) });
      await showRun(turn, client, thread, terminal);
    }
  } finally {
    terminal.close();
  }
}

/** Lines that the user types, until an empty one, the end of input or Ctrl-C. */
async function* questions(terminal: Interface): AsyncGenerator<string> {
  const leave = new AbortController();
  terminal.once("close", () => leave.abort());
  for (;;) {
    const stop = () => leave.abort();
    terminal.once("SIGINT", stop);
    const line = await terminal.question("\n> ", { signal: leave.signal }).catch(() => "");
    terminal.off("SIGINT", stop);
    if (line.trim() === "") return;
    yield line;
  }
}

async function showRun(
  turn: ReturnType<Client["run"]>,
  client: Client,
  thread: string,
  terminal: Interface,
): Promise<void> {
  let runId: string | undefined;
  let presses = 0;
  const stop = () => {
    if (runId === undefined) return;
    const mode = presses++ === 0 ? "interrupt" : "cancel";
    process.stdout.write(
      `\n(${mode === "interrupt" ? "stopping after this step; Ctrl-C again to stop now" : "stopping"})\n`,
    );
    client.stop(thread, runId, mode).catch(() => {});
  };
  terminal.on("SIGINT", stop);
  try {
    for await (const event of turn) {
      runId = event.event === "on_chat_model_stream" ? runId : (event.run_id ?? runId);
      process.stdout.write(render(event));
    }
  } catch (error) {
    if (error instanceof ProblemError) process.stdout.write(`✗ ${error.message} (${error.code})\n`);
    else
      process.stdout.write(`✗ No answer from the server. Is it running (\`npm start\`)? ${String(error)}\n`);
  } finally {
    terminal.off("SIGINT", stop);
  }
}
