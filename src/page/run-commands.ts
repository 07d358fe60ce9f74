// The user's actions on the run in progress, and on the messages that wait for it.

import { touch } from "./frame.ts";
import type { LiveThread, QueuedMessage } from "./live.ts";
import { choiceOf, saveQueued } from "./outbox.ts";
import { isWithdrawn, startRun, steer } from "./sending.ts";
import { client } from "./session.ts";

/**
 * Stops the run in progress. The stream reports the end of the run. The page shows an `interrupt` before the server
 * responds, because the server waits for the step. If the server refuses, the page stops showing it.
 */
export async function stopRun(thread: string, live: LiveThread, mode: "cancel" | "interrupt"): Promise<void> {
  const { id } = live.page.run;
  if (id === undefined) return;
  const before = live.stopping;
  live.stopping = id;
  touch(live);
  try {
    await client.stop(thread, id, mode);
  } catch (error) {
    live.stopping = before;
    touch(live);
    throw error;
  }
}

/** Removes a message from the queue by cancelling its run before it starts. */
export async function takeBack(thread: string, live: LiveThread, id: string): Promise<void> {
  await client.stop(thread, id, "cancel");
  saveQueued(id, undefined);
  live.waiting = live.waiting.filter((each) => each.id !== id);
  touch(live);
}

/**
 * Sends a queued message to the run in progress, or starts a run if that run has ended. Removes it from the queue
 * first, so it is never read twice. If the server then becomes unreachable, the text stays visible for a retry.
 */
export async function sendNow(thread: string, live: LiveThread, { id, text }: QueuedMessage): Promise<void> {
  const run = live.page.run.id;
  if (run === undefined || text === undefined || !(await isWithdrawn(thread, id))) return;
  const message = await steer(thread, run, text);
  const sent: QueuedMessage = message
    ? { id: message, as: "steering", text }
    : {
        id: (await startRun({ thread, content: text, choice: choiceOf(thread), isQueued: true })).id,
        as: "queued",
        text,
      };
  saveQueued(id, undefined);
  live.waiting = [...live.waiting.filter((each) => each.id !== id), sent];
  touch(live);
}

/**
 * Replaces a queued message with a new text at the end of the queue. The text is sent once, even if the page is
 * reloaded meanwhile.
 */
export async function changeQueued(
  thread: string,
  live: LiveThread,
  id: string,
  text: string,
): Promise<void> {
  const run = await startRun({
    ...{ thread, content: text, choice: choiceOf(thread), isQueued: true, instead: id },
  });
  saveQueued(id, undefined);
  saveQueued(run.id, { text });
  const others = live.waiting.filter((each) => each.id !== id && each.id !== run.id);
  live.waiting = [...others, { id: run.id, as: "queued", text }];
  touch(live);
}
