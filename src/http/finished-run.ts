// The answer to a client that waits for a run instead of following it.

import type { FastifyReply } from "fastify";
import { AppError } from "../core/errors.ts";
import type { StreamEvent } from "../core/event.ts";
import type { Owner } from "../core/ids.ts";
import type { Message } from "../core/message.ts";
import type { RunRecord } from "../core/records.ts";
import type { RunManager } from "../runs/manager.ts";
import { gone } from "./gone.ts";

/**
 * Resolves with the ended run and all it added to the thread. When the client leaves first, `onLeave` is
 * called and the run is returned as it is.
 */
export async function finishedRun(
  runs: RunManager,
  { owner, run }: { owner: Owner; run: RunRecord },
  { reply, closing }: { reply: FastifyReply; closing: AbortSignal },
  onLeave: () => Promise<void>,
): Promise<RunRecord & { messages: Message[] }> {
  const left = gone(reply);
  const messages: Message[] = [];
  for await (const batch of runs.events(owner, run, 0, AbortSignal.any([left, closing]))) {
    for (const { event, json } of batch) if (event === "on_message") messages.push(...messageIn(json));
  }
  if (left.aborted) await onLeave();
  else if (closing.aborted)
    throw new AppError("shutting_down", "The server is shutting down. The run is kept.");
  return { ...(await runs.get(owner, run.thread_id, run.id)), messages };
}

/** The log holds events as they were checked when they were made; a subagent's belong to its own thread. */
function messageIn(json: string): Message[] {
  const event = JSON.parse(json) as Extract<StreamEvent, { event: "on_message" }>;
  return event.path ? [] : [event.data.message];
}
