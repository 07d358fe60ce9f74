// What the input of a run means on the thread as it is: new messages, messages in place of others, or a repeat. Pure.

import { AppError } from "../../agent/core/errors.ts";
import { isUserInputRole, type Message } from "../../agent/core/message.ts";
import { type Alignment, align } from "../../engine/runs/align.ts";
import { roleOf, type SentMessage } from "./input.ts";
import { type Checkpoint, checkpointOf, headOf } from "./resources/checkpoints.ts";

export interface Task {
  readonly input: readonly Message[];
  readonly place: Alignment;
}

/** `said`: what counts of what is sent. Throws `invalid_request` when there is nothing to do, and for an unknown checkpoint. */
export function taskOf(
  thread: readonly Message[],
  said: readonly Message[],
  checkpointId: string | undefined,
): Task {
  const checkpoint = checkpointId === undefined ? undefined : checkpointOf(thread, checkpointId);
  if (checkpointId !== undefined && !checkpoint)
    throw new AppError(
      "invalid_request",
      `checkpoint: there is no checkpoint \`${checkpointId}\` in this thread; it may have been rewritten.`,
    );
  const input = newIn(thread, said);
  const isBranch = checkpoint !== undefined && checkpoint.count < thread.length;
  if (input.length === 0) {
    const isUnanswered = thread.at(-1)?.role === "user";
    if (!isBranch && !isUnanswered) throw nothingToDo();
    return again(thread, checkpoint ?? headOf(thread));
  }
  const newest = input.at(-1);
  const known = newest && align(thread, [newest], { isWhole: false, isRegenerated: isBranch });
  if (newest && known && known.as !== "new") return { input: [newest], place: known };
  return isBranch ? branch(thread, checkpoint, input) : { input, place: { as: "new" } };
}

const nothingToDo = () =>
  new AppError("invalid_request", "There is nothing to do: send `input`, `command` or a `checkpoint`.");

/** What of the sent messages counts: the model's messages and results of tools are the history of a thread that has none. */
export function countingIn(thread: readonly Message[], sent: readonly SentMessage[]): readonly SentMessage[] {
  return thread.length === 0 ? sent : sent.filter((each) => isUserInputRole(roleOf(each)));
}

/**
 * The messages to run with. A client may send all that it holds: what the thread has already is left out, except the newest
 * one.
 */
function newIn(thread: readonly Message[], said: readonly Message[]): Message[] {
  const known = new Set(thread.map(({ id }) => id));
  return said.filter(({ id }, index) => !known.has(id) || index === said.length - 1);
}

/** Another answer to the message of the user that the checkpoint follows. */
function again(thread: readonly Message[], { count }: Checkpoint): Task {
  const said = thread.slice(0, count).findLast(({ role }) => role === "user");
  if (!said) throw nothingToDo();
  return { input: [said], place: inPlaceOf(said) };
}

/** Other messages from a place of the thread on. */
function branch(thread: readonly Message[], { count }: Checkpoint, input: readonly Message[]): Task {
  const next = thread[count];
  if (next?.role === "user") return { input, place: inPlaceOf(next) };
  // Within a turn: what the user said to begin it stays.
  const said = thread.slice(0, count).findLast(({ role }) => role === "user");
  if (said) return { input: [said, ...input], place: inPlaceOf(said) };
  const first = thread.find(({ role }) => role === "user");
  return { input, place: first ? inPlaceOf(first) : { as: "new" } };
}

const inPlaceOf = ({ id }: Message): Alignment => ({ as: "replacement", of: id });
