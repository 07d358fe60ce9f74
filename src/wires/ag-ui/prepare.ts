// Prepares a run from an input, either for the user's newest message or to continue with the answers.

import { AppError } from "../../agent/core/errors.ts";
import type { Message } from "../../agent/core/message.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { type Alignment, align, keyOfMessage } from "../../engine/runs/align.ts";
import {
  type Caller,
  type PreparedTurn,
  prepareTurn,
  type TurnInput,
  type TurnThread,
} from "../../engine/runs/prepare-turn.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { messageOf } from "../messages.ts";
import { answersInWords } from "../words.ts";
import { beforeRun, type ThreadBefore } from "./frames.ts";
import { clientTools, contentOf, openingOf, type RunAgentInput, responsesIn } from "./input.ts";
import { asksInWords } from "./older-clients.ts";

/** The agent and the thread of an input. */
export interface InputPlace {
  readonly thread_id: string;
  readonly agent: string;
  /** For an older client with the version 0.0.N, the number N. */
  readonly version: number | undefined;
}

export interface PreparedInput {
  /** Starts or finds the run. `stream` is the id of the reserved stream. */
  readonly start: (stream: string) => Promise<RunRecord>;
  readonly before: ThreadBefore;
}

/**
 * Checks the input and returns a function that starts its run. Throws `invalid_request` if the input has no new message,
 * and `interrupt_closed` if its answers match no open question.
 */
export async function prepare(
  { runs, stores, refusesSystemMessages = false }: RouteServices,
  caller: Caller,
  { thread_id, agent, version }: InputPlace,
  body: RunAgentInput,
): Promise<PreparedInput> {
  const turn = await prepareTurn(runs, caller, {
    ...{ thread_id, agent, request: { tools: clientTools(body) } },
    ...(isAnswer(body)
      ? { answers: (open) => responsesIn(body, open) }
      : { input: (thread) => turnInputOf(body, thread, refusesSystemMessages) }),
    answersInWords: asksInWords(version) ? answersInWords : undefined,
  });
  const { at } = turn;
  if (at) {
    const start = async (stream: string) => {
      await turn.start(stream);
      return at;
    };
    return { start, before: await beforeRun(stores, caller.owner, at) };
  }
  return { start: turn.start, before: await beforeOf(turn, body) };
}

/** Returns the thread at the start of the run. */
async function beforeOf({ as, thread, replaces }: PreparedTurn, body: RunAgentInput): Promise<ThreadBefore> {
  const [messages, state] = await Promise.all([thread.messages(), thread.state()]);
  const cut = replaces === undefined ? -1 : messages.findIndex(({ id }) => id === replaces);
  // The thread's result replaces the client's copy of it.
  const open = as === "answers" ? await thread.open() : [];
  const showsMessages = body.messages.some(
    ({ role, toolCallId }) => role === "tool" && open.some(({ call_id }) => call_id === toolCallId),
  );
  return { messages: cut < 0 ? messages : messages.slice(0, cut), state, showsMessages };
}

/** Returns true if the newest part of the input is an answer and not a message from the user. */
function isAnswer({ resume, messages }: RunAgentInput): boolean {
  if (resume && resume.length > 0) return true;
  return messages.findLast(({ role }) => role === "user" || role === "tool")?.role === "tool";
}

/** Returns the user's newest message, which may also replace an earlier message or repeat a request. */
async function turnInputOf(
  body: RunAgentInput,
  thread: TurnThread,
  refusesSystemMessages: boolean,
): Promise<TurnInput> {
  const [known, newest] = await Promise.all([thread.messages(), thread.newest()]);
  const isBusy = newest !== undefined && !isSettled(newest.status);
  const { message, place } = newestOf(body, known, isBusy);
  const opening = known.length === 0 ? openingOf(body) : [];
  if (refusesSystemMessages && opening.length > 0)
    throw new AppError(
      "invalid_request",
      "messages, context: this server accepts no `system` messages from users. Use `user`.",
    );
  return { messages: [...opening, message], place, idempotency_key: keyOfMessage(message, known) };
}

/**
 * Returns the user's newest message and its position in the thread. Throws `invalid_request` if the input has no new
 * message.
 */
function newestOf({ messages: sent }: RunAgentInput, known: readonly Message[], isBusy: boolean) {
  const at = sent.findLastIndex(({ role }) => role === "user");
  const newest = sent[at];
  if (!newest)
    throw new AppError("invalid_request", "messages: must contain a message with the role `user`.");
  const message = messageOf({ id: newest.id ?? undefined, content: contentOf(newest) });
  const before = sent.slice(0, at).filter(({ role }) => role === "user");
  const held = [...before.map(({ id }) => ({ id: id ?? undefined, content: "" })), message];
  const place: Alignment = align(known, held, { isWhole: true, isRegenerated: !isBusy });
  const isAnswered = sent.slice(at + 1).some(({ role }) => role === "assistant");
  if (place.as === "replacement" && place.of === message.id && isAnswered)
    throw new AppError(
      "invalid_request",
      "messages: the last message already has an answer. Add a message, or remove the last answer to get another one.",
    );
  return { message, place };
}
