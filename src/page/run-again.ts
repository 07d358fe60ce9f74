// Runs what a run was asked, or one of its steps, once more, with another model, other words or other arguments: in a fork, so that
// the conversation stays as it is.

import type { Cell, UserCell } from "../client/cells.ts";
import { ProblemError, type Run, type RunOptions, type ToolCall } from "../client/client.ts";
import { createFold } from "../client/fold.ts";
import { type Choice, randomId } from "./outbox.ts";
import { contentOf } from "./sending.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

/** What a run was asked, and where. */
export interface RunInput {
  readonly message: UserCell;
  /** The message before it; absent for the first one of the thread. */
  readonly before?: string | undefined;
}

/** A step of the conversation. */
export interface StepPosition {
  /** The id of the message before it. */
  readonly before: string;
  /** The calls of its answer. */
  readonly calls: readonly ToolCall[];
}

export interface Again {
  readonly choice: Choice;
  readonly text: string;
  /** Added for this run as a message of the system; empty: none. */
  readonly instructions: string;
  readonly temperature?: number | undefined;
}

/**
 * Where a run was asked several messages at once, as a subagent is, the last one: those before it are read again as well. Undefined
 * when the run began without a message, its events are no longer kept, or the message was replaced.
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

/** `cell`: the id of the step's answer, or of one of its calls. Throws when the conversation no longer has it. */
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
 * Runs a step once more, with what the model had read before it, in a thread of its own. `calls`: run in place of asking the model
 * first. Throws what the server says.
 */
export async function runStepAgain(
  thread: string,
  { before }: StepPosition,
  { choice, instructions, temperature }: Omit<Again, "text">,
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

/** Starts a run in a copy of the thread, which goes away when the server refuses the run. */
async function inCopy(thread: string, message_id: string, run: RunOptions): Promise<Run> {
  const { id } = await client.threads.fork(thread, { message_id });
  try {
    return await client.start(id, run);
  } catch (error) {
    if (error instanceof ProblemError) await client.threads.delete(id).catch(() => {});
    throw error;
  }
}

const optionsOf = ({ agent, model }: Choice, temperature: number | undefined): RunOptions => ({
  ...(agent ? { agent } : {}),
  ...(model ? { model } : {}),
  ...(temperature === undefined ? {} : { temperature }),
});

/** Resolves with the new run, in a thread of its own. Throws what the server says. */
export async function runAgain(thread: string, asked: RunInput, again: Again): Promise<Run> {
  const { text, instructions, temperature } = again;
  const content = contentOf(text, asked.message.attachments) ?? text;
  const run: RunOptions = {
    messages: [
      ...(instructions.trim() ? [{ role: "system" as const, content: instructions }] : []),
      { role: "user", content },
    ],
    ...optionsOf(again.choice, temperature),
  };
  return asked.before === undefined
    ? client.start(`th_${randomId()}`, run)
    : inCopy(thread, asked.before, run);
}
