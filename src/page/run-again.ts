// Runs what a run was asked once more, with another model or other words: in a fork, so that the conversation stays as it is.

import type { Cell, UserCell } from "../client/cells.ts";
import type { Run, RunOptions } from "../client/client.ts";
import { createFold } from "../client/fold.ts";
import { type Choice, randomId } from "./outbox.ts";
import { contentOf } from "./sending.ts";
import { client } from "./session.ts";

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

/** Undefined when the events are no longer kept, or the message was replaced. */
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

/** Resolves with the new run, in a thread of its own. Throws what the server says. */
export async function runAgain(thread: string, asked: Asked, again: Again): Promise<Run> {
  const { text, instructions, temperature } = again;
  const { agent, model } = again.choice;
  const content = contentOf(text, asked.message.attachments) ?? text;
  const run: RunOptions = {
    messages: [
      ...(instructions.trim() ? [{ role: "system" as const, content: instructions }] : []),
      { role: "user", content },
    ],
    ...(agent ? { agent } : {}),
    ...(model ? { model } : {}),
    ...(temperature === undefined ? {} : { temperature }),
  };
  const place =
    asked.before === undefined
      ? `th_${randomId()}`
      : (await client.threads.fork(thread, { message_id: asked.before })).id;
  return client.start(place, run);
}
