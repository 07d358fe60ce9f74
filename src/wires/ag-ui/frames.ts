// The frames for a client: either the thread before a run and then the run's events, or a thread without an active run.

import { hasCode } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { keyOf, newestRun } from "../../engine/runs/control.ts";
import { messagesIn, readLogRange } from "../../engine/runs/follow.ts";
import { openOn } from "../../engine/runs/start.ts";
import type { Owner } from "../../protocol/ids.ts";
import { SPAN_STARTS } from "../../protocol/span-reader.ts";
import type { Frames } from "../../server/http/sse.ts";
import { foldedFrames } from "../fold.ts";
import { idleFrames, type ProjectOptions, project, type Reader } from "./table.ts";

/** The thread before a run, and whether the client needs its messages. */
export type ThreadBefore = Omit<ProjectOptions, keyof Reader>;

/** Returns the run's events in the form for this client. */
export function runFrames(stores: Stores, owner: Owner, from: RunRecord, options: ProjectOptions): Frames {
  const held = new Set(options.messages.map(({ id }) => id));
  const messages = async () =>
    sinceUser(await stores.threads.messages(owner, from.thread_id)).filter(({ id }) => !held.has(id));
  return foldedFrames(stores, { owner, from, fold: project(options), unit: "run", messages });
}

/**
 * Returns the current thread, followed by the events of its active run, if any. Returns no frames for an unknown
 * thread.
 */
export async function threadFrames(
  stores: Stores,
  owner: Owner,
  threadId: string,
  reader: Reader,
): Promise<Frames> {
  const { threads } = stores;
  if (!(await threads.get(owner, threadId))) return async function* () {};
  const active = await activeRun(stores, owner, threadId);
  if (active) {
    const before = await beforeRun(stores, owner, active);
    return runFrames(stores, owner, active, { ...reader, ...before, showsMessages: true });
  }
  const [messages, state, open] = await Promise.all([
    threads.messages(owner, threadId),
    threads.state(owner, threadId),
    openOn(threads, owner, threadId),
  ]);
  return async function* () {
    yield idleFrames(reader, { messages, state, open });
  };
}

/** Returns the run that is executing or waiting. */
export async function activeRun(
  { runs }: Pick<Stores, "runs">,
  owner: Owner,
  threadId: string,
): Promise<RunRecord | undefined> {
  const newest = await newestRun(runs, owner, threadId);
  return newest && !isSettled(newest.status) ? newest : undefined;
}

/** Returns the thread without the messages that this run adds. */
export async function beforeRun(stores: Stores, owner: Owner, run: RunRecord): Promise<ThreadBefore> {
  const { thread_id } = run;
  const [messages, state] = await Promise.all([
    stores.threads.messages(owner, thread_id),
    stores.threads.state(owner, thread_id),
  ]);
  const added = await addedBy(stores, owner, run, messages);
  return { messages: messages.filter(({ id }) => !added.has(id)), state, showsMessages: false };
}

/** Returns the ids of the messages that the run has added, except its input. */
async function addedBy(
  { events }: Stores,
  owner: Owner,
  run: RunRecord,
  messages: readonly Message[],
): Promise<Set<string>> {
  const key = keyOf(owner, run);
  const added = new Set<string>();
  let hasSpoken = false;
  try {
    const { last } = await events.bounds(key);
    for await (const entry of readLogRange(events, key, { after: 0, last })) {
      hasSpoken ||= entry.event === SPAN_STARTS.model;
      for (const { role, id } of await messagesIn([entry], owner.tenant))
        if (hasSpoken || role === "tool") added.add(id);
    }
    return added;
  } catch (error) {
    if (!hasCode(error, "events_expired")) throw error;
    return new Set(sinceUser(messages).map(({ id }) => id));
  }
}

const sinceUser = (messages: readonly Message[]) =>
  messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
