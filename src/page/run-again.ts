// Runs what a run was asked, or one of its steps, once more, with another model or other words: in a fork, so that the conversation stays as it is.

import type { Cell, UserCell } from "../client/cells.ts";
import type { Run, RunOptions } from "../client/client.ts";
import { createFold } from "../client/fold.ts";
import { type Choice, randomId } from "./outbox.ts";
import { contentOf } from "./sending.ts";
import { client } from "./session.ts";
import { t } from "./texts.ts";

/** What a run was asked, and where. */
export interface Asked {
  readonly message: UserCell;
  /** The message before it; absent for the first one of the thread. */
  readonly before?: string | undefined;
}

export interface Again {
  readonly choice: Choice;
  readonly text: string;
  /** Added for this run as a message of the system; empty: none. */
  readonly instructions: string;
  readonly temperature?: number | undefined;
}

/** Undefined when the run began with answers, its events are no longer kept, or the message was replaced. */
export async function askedOf(thread: string, run: string, signal: AbortSignal): Promise<Asked | undefined> {
  const { page, apply } = createFold({ touch: () => {} });
  for await (const event of client.runs.events(thread, run, {}, signal)) {
    apply(event);
    const message = page.lane.cells.find((cell: Cell) => cell.kind === "user");
    if (!message) continue;
    const { messages } = await client.threads.state(thread, signal);
    const at = messages.findIndex(({ id }) => id === message.id);
    return at < 0 ? undefined : { message, before: messages[at - 1]?.id };
  }
  return undefined;
}

/** Runs a step once more, with what the model had read before it, in a thread of its own. Throws what the server says. */
export async function runStepAgain(
  thread: string,
  answer: string,
  { choice, instructions, temperature }: Omit<Again, "text">,
): Promise<Run> {
  const { messages } = await client.threads.state(thread);
  const before = messages[messages.findIndex(({ id }) => id === answer) - 1];
  if (!before) throw new Error(t().again.stepGone);
  const { id } = await client.threads.fork(thread, { message_id: before.id });
  const content = instructions.trim();
  return client.start(id, {
    ...(content ? { messages: [{ role: "system", content }] } : { continue: true }),
    ...optionsOf(choice, temperature),
  });
}

const optionsOf = ({ agent, model }: Choice, temperature: number | undefined): RunOptions => ({
  ...(agent ? { agent } : {}),
  ...(model ? { model } : {}),
  ...(temperature === undefined ? {} : { temperature }),
});

/** Resolves with the new run, in a thread of its own. Throws what the server says. */
export async function runAgain(thread: string, asked: Asked, again: Again): Promise<Run> {
  const { text, instructions, temperature } = again;
  const content = contentOf(text, asked.message.attachments) ?? text;
  const run: RunOptions = {
    messages: [
      ...(instructions.trim() ? [{ role: "system" as const, content: instructions }] : []),
      { role: "user", content },
    ],
    ...optionsOf(again.choice, temperature),
  };
  const place =
    asked.before === undefined
      ? `th_${randomId()}`
      : (await client.threads.fork(thread, { message_id: asked.before })).id;
  return client.start(place, run);
}
