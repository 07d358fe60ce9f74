// Repeats a run, or one of its steps, with another model, other instructions or other arguments. The new run uses a
// fork of the thread, so the conversation does not change.

import type { Cell, UserCell } from "../client/cells.ts";
import { ProblemError, type Run, type RunOptions, type ToolCall } from "../client/client.ts";
import { createFold } from "../client/fold.ts";
import { type RunChoice, randomId } from "./outbox.ts";
import { contentOf } from "./sending.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

/** The message that started a run, and its thread. */
export interface RunInput {
  readonly message: UserCell;
  /** The message before it. Undefined for the first message of a thread. */
  readonly before?: string | undefined;
}

/** A step of the conversation. */
export interface StepPosition {
  /** The id of the message before it. */
  readonly before: string;
  /** The calls in the step's answer. */
  readonly calls: readonly ToolCall[];
}

export interface RunAgainOptions {
  readonly choice: RunChoice;
  readonly text: string;
  /** Added to this run as a system message. Empty for none. */
  readonly instructions: string;
  readonly temperature?: number | undefined;
}

/**
 * If a run started with several messages, as a subagent's run does, returns the last one. The new run also reads the
 * messages before it. Returns undefined if the run started without a message, if its events have expired, or if the
 * message was replaced.
 */
export async function askedOf(
  thread: string,
  run: string,
  signal: AbortSignal,
): Promise<RunInput | undefined> {
  const { page, apply } = createFold({ touch: () => {} });
  for await (const event of client.runs.events(thread, run, {}, signal)) {
    if (event.event === "on_chat_model_start") break;
    apply(event);
  }
  const message = page.lane.cells.findLast((cell: Cell) => cell.kind === "user");
  if (!message) return undefined;
  const { messages } = await client.threads.state(thread, signal);
  const at = messages.findIndex(({ id }) => id === message.id);
  return at < 0 ? undefined : { message, before: messages[at - 1]?.id };
}

/** `cell` is the id of the step's answer, or of one of its calls. Throws if the conversation no longer contains it. */
export async function stepOf(thread: string, cell: string, signal: AbortSignal): Promise<StepPosition> {
  const { messages } = await client.threads.state(thread, signal);
  const at = messages.findLastIndex(
    (each) =>
      each.id === cell || (each.role === "assistant" && each.tool_calls?.some(({ id }) => id === cell)),
  );
  const [before, answer] = [messages[at - 1], messages[at]];
  if (!before || answer?.role !== "assistant") throw new Error(t().again.stepGone);
  return { before: before.id, calls: answer.tool_calls ?? [] };
}

/**
 * Repeats a step in a new thread with the messages that the model had read before the step. If `calls` are given, they
 * run first instead of a model call. Throws the server's error.
 */
export async function runStepAgain(
  thread: string,
  { before }: StepPosition,
  { choice, instructions, temperature }: Omit<RunAgainOptions, "text">,
  calls?: RunOptions["calls"],
): Promise<Run> {
  const content = instructions.trim();
  const said: RunOptions = content ? { messages: [{ role: "system", content }] } : {};
  return inCopy(thread, before, {
    ...said,
    ...(calls ? { calls } : content ? {} : { continue: true }),
    ...optionsOf(choice, temperature),
  });
}

/** Starts a run in a copy of the thread. Deletes the copy if the server refuses the run. */
async function inCopy(thread: string, message_id: string, run: RunOptions): Promise<Run> {
  const { id } = await client.threads.fork(thread, { message_id });
  try {
    return await client.start(id, run);
  } catch (error) {
    if (error instanceof ProblemError) await client.threads.delete(id).catch(() => {});
    throw error;
  }
}

const optionsOf = ({ agent, model }: RunChoice, temperature: number | undefined): RunOptions => ({
  ...(agent ? { agent } : {}),
  ...(model ? { model } : {}),
  ...(temperature === undefined ? {} : { temperature }),
});

/** Returns the new run, in a new thread. Throws the server's error. */
export async function runAgain(thread: string, asked: RunInput, options: RunAgainOptions): Promise<Run> {
  const { text, instructions, temperature } = options;
  const content = contentOf(text, asked.message.attachments) ?? text;
  const run: RunOptions = {
    messages: [
      ...(instructions.trim() ? [{ role: "system" as const, content: instructions }] : []),
      { role: "user", content },
    ],
    ...optionsOf(options.choice, temperature),
  };
  return asked.before === undefined
    ? client.start(`th_${randomId()}`, run)
    : inCopy(thread, asked.before, run);
}
