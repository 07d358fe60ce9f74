// What a person does to the run in progress, and to the messages that wait for it.

import { touch } from "./frame.ts";
import type { Live, QueuedMessage } from "./live.ts";
import { choiceOf, saveQueued } from "./outbox.ts";
import { isWithdrawn, startRun, steer } from "./sending.ts";
import { client } from "./session.ts";

/**
 * Stops the run in progress. What the server says of its end is seen in the stream. That it stops after its step is said before the
 * server answers, which waits for the step; where the server refuses, it is taken back.
 */
export async function stopRun(thread: string, live: Live, mode: "cancel" | "interrupt"): Promise<void> {
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

/** Takes a message out of the queue: its run is cancelled before it begins. */
export async function takeBack(thread: string, live: Live, id: string): Promise<void> {
  await client.stop(thread, id, "cancel");
  saveQueued(id, undefined);
  live.waiting = live.waiting.filter((each) => each.id !== id);
  touch(live);
}

/**
 * The run in progress reads the message before its next step, or it runs next when that has ended meanwhile. It leaves the queue
 * first, so that it is never read twice; when the server cannot be reached then, its words stay in sight for another try.
 */
export async function sendNow(thread: string, live: Live, { id, text }: QueuedMessage): Promise<void> {
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

/** The queued message with other words, at the end of the queue. It is sent once, also when the page is read again meanwhile. */
export async function changeQueued(thread: string, live: Live, id: string, text: string): Promise<void> {
  const run = await startRun({
    ...{ thread, content: text, choice: choiceOf(thread), isQueued: true, instead: id },
  });
  saveQueued(id, undefined);
  saveQueued(run.id, { text });
  const others = live.waiting.filter((each) => each.id !== id && each.id !== run.id);
  live.waiting = [...others, { id: run.id, as: "queued", text }];
  touch(live);
}
