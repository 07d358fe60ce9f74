// `skein chat`: talks to a running server and asks the user what a run asks. Ctrl-C stops the run after its step, a second
// one at once, a third one stops following. With no active run it exits; an open question stays open.

import { createInterface, type Interface } from "node:readline";
import {
  type Client,
  createClient,
  type Interrupt,
  ProblemError,
  type StreamEvent,
} from "../client/client.ts";
import { newThreadId } from "../core/ids.ts";
import { type Ask, answersTo, askingAt } from "./answering.ts";
import { renderer, visible } from "./render.ts";

export interface ChatOptions {
  readonly url: string;
  readonly agent?: string | undefined;
  readonly thread?: string | undefined;
  /** An API key or another bearer token. */
  readonly key?: string | undefined;
}

/** Resolves with the exit code when the user leaves. */
export async function chat({ url, agent, thread = newThreadId(), key }: ChatOptions): Promise<number> {
  if (!(await isThere(url))) {
    process.stderr.write(`No Skein server responds at ${url}. Start one with \`npm start\`.\n`);
    return 1;
  }
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const client = createClient({ baseUrl: url, headers, onRetry });
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: "\n> " });
  process.stdout.write(`Thread ${thread} on ${url}. An empty line or Ctrl-C exits.\n`);
  const ask = askingAt(terminal);
  // Created before the first run, so that it buffers everything typed from here on.
  const lines = terminal[Symbol.asyncIterator]();
  let isOpen = true;
  terminal.once("close", () => {
    isOpen = false;
  });
  await showRuns(client, thread, await resumeOpen(client, thread, ask), { terminal, ask });
  const leave = () => terminal.close();
  terminal.on("SIGINT", leave);
  if (isOpen) terminal.prompt();
  for await (const input of lines) {
    if (input.trim() === "") break;
    terminal.off("SIGINT", leave);
    const run = { input, ...(agent ? { agent } : {}) };
    await showRuns(client, thread, (signal) => client.run(thread, run, signal), { terminal, ask });
    terminal.on("SIGINT", leave);
    if (isOpen) terminal.prompt();
  }
  terminal.close();
  return 0;
}

/** Reports only the third attempt: a short interruption is not worth a line. */
function onRetry(reason: Error, attempt: number): void {
  if (attempt === 3) process.stdout.write(`\n(${visible(reason.message)} Retrying; press Ctrl-C to stop.)\n`);
}

async function isThere(url: string): Promise<boolean> {
  try {
    const { status } = await fetch(`${url.replace(/\/+$/, "")}/health`, {
      signal: AbortSignal.timeout(5_000),
    });
    return status === 200;
  } catch {
    return false;
  }
}

/** What the first, second and third Ctrl-C do. */
const STOPS = [
  "stopping after this step; Ctrl-C again to stop now",
  "stopping; Ctrl-C again to stop following",
  "no longer following; the run may continue",
];

type Start = (signal: AbortSignal) => AsyncIterable<StreamEvent>;

/** Asks the questions that were left open on the thread. */
async function resumeOpen(client: Client, thread: string, ask: Ask): Promise<Start | undefined> {
  try {
    const asked = await client.interrupts(thread);
    return await answering(client, thread, { runId: asked[0]?.run_id, asked }, ask);
  } catch (error) {
    // The first message reports missing permission.
    if (error instanceof ProblemError) return undefined;
    throw error;
  }
}

/** `undefined` when nothing was asked or the user leaves the question open. */
async function answering(
  client: Client,
  thread: string,
  { runId, asked }: Shown,
  ask: Ask,
): Promise<Start | undefined> {
  const answers = asked.length > 0 ? await answersTo(asked, ask) : undefined;
  if (runId === undefined || !answers) return undefined;
  return (signal) => client.resume(thread, runId, answers, signal);
}

/** Shows a run, and the runs that resume it once its questions are answered. */
async function showRuns(
  client: Client,
  thread: string,
  start: Start | undefined,
  { terminal, ask }: { readonly terminal: Interface; readonly ask: Ask },
): Promise<void> {
  for (let next = start; next; )
    next = await answering(client, thread, await showRun(client, thread, next, terminal), ask);
}

interface Shown {
  readonly runId: string | undefined;
  /** The questions that it waits for. */
  readonly asked: readonly Interrupt[];
}

async function showRun(client: Client, thread: string, start: Start, terminal: Interface): Promise<Shown> {
  const asked: Interrupt[] = [];
  const render = renderer();
  const leaving = new AbortController();
  let runId: string | undefined;
  let presses = 0;
  const stop = () => {
    process.stdout.write(`\n(${STOPS[runId === undefined ? 2 : Math.min(presses, 2)]})\n`);
    if (runId === undefined || presses >= 2) leaving.abort();
    else client.stop(thread, runId, presses === 0 ? "interrupt" : "cancel").catch(() => {});
    presses++;
  };
  terminal.on("SIGINT", stop);
  try {
    for await (const event of start(leaving.signal)) {
      // The parent repeats the questions of its subagents without a path.
      if (event.event === "on_interrupt" && !event.path) asked.push(event.data);
      if (event.event !== "on_chat_model_stream" && !event.path) runId = event.run_id ?? runId;
      process.stdout.write(render(event));
    }
  } catch (error) {
    if (error instanceof ProblemError)
      process.stdout.write(`✗ ${visible(`${error.message} (${error.code})`)}\n`);
    else if (!leaving.signal.aborted)
      process.stdout.write(`✗ The connection failed: ${visible(String(error))}\n`);
  } finally {
    terminal.off("SIGINT", stop);
  }
  return { runId, asked };
}
