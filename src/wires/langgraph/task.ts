// Decides what a run's input means for the current thread: new messages, a replacement of earlier messages, or a
// repeat. Pure.

import { AppError } from "../../agent/core/errors.ts";
import { isUserInputRole, type Message } from "../../agent/core/message.ts";
import { type Alignment, align } from "../../engine/runs/align.ts";
import { roleOf, type SentMessage } from "./input.ts";
import { type Checkpoint, checkpointOf, headOf } from "./resources/checkpoints.ts";

export interface AlignedInput {
  readonly input: readonly Message[];
  readonly place: Alignment;
}

/**
 * `said` contains the messages that `countingIn` selected. Throws `invalid_request` if there is nothing to run, and for
 * an unknown checkpoint.
 */
export function taskOf(
  thread: readonly Message[],
  said: readonly Message[],
  checkpointId: string | undefined,
): AlignedInput {
  const checkpoint = checkpointId === undefined ? undefined : checkpointOf(thread, checkpointId);
  if (checkpointId !== undefined && !checkpoint)
    throw new AppError(
      "invalid_request",
      `checkpoint: this thread has no checkpoint \`${checkpointId}\`. The thread may have been rewritten.`,
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
  new AppError(
    "invalid_request",
    "The request has nothing to run. Send `input`, `command` or a `checkpoint`.",
  );

/**
 * Returns those of the sent messages that the server uses. It uses model messages and tool results only as the history
 * of an empty thread.
 */
export function countingIn(thread: readonly Message[], sent: readonly SentMessage[]): readonly SentMessage[] {
  return thread.length === 0 ? sent : sent.filter((each) => isUserInputRole(roleOf(each)));
}

/**
 * Returns the messages to run with. A client may send all messages that it has, so known messages are left out, except
 * the newest one.
 */
function newIn(thread: readonly Message[], said: readonly Message[]): Message[] {
  const known = new Set(thread.map(({ id }) => id));
  return said.filter(({ id }, index) => !known.has(id) || index === said.length - 1);
}

/** Requests another answer to the user message before the checkpoint. */
function again(thread: readonly Message[], { count }: Checkpoint): AlignedInput {
  const said = thread.slice(0, count).findLast(({ role }) => role === "user");
  if (!said) throw nothingToDo();
  return { input: [said], place: inPlaceOf(said) };
}

/** Replaces the thread's messages from a position on. */
function branch(thread: readonly Message[], { count }: Checkpoint, input: readonly Message[]): AlignedInput {
  const next = thread[count];
  if (next?.role === "user") return { input, place: inPlaceOf(next) };
  // Within a turn, the user message that started it is kept.
  const said = thread.slice(0, count).findLast(({ role }) => role === "user");
  if (said) return { input: [said, ...input], place: inPlaceOf(said) };
  const first = thread.find(({ role }) => role === "user");
  return { input, place: first ? inPlaceOf(first) : { as: "new" } };
}

const inPlaceOf = ({ id }: Message): Alignment => ({ as: "replacement", of: id });
