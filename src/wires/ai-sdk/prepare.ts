// Prepares a run from a chat's newest message, either for the user's message or to continue with the answers in it.

import { AppError } from "../../agent/core/errors.ts";
import type { UserMessage } from "../../agent/core/message.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { align, keyOfMessage, type SentMessage } from "../../engine/runs/align.ts";
import { type Caller, prepareTurn, type TurnInput, type TurnThread } from "../../engine/runs/prepare-turn.ts";
import { asksToApprove, type Interrupt } from "../../protocol/interrupt.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { messageOf } from "../messages.ts";
import { answersInWords } from "../words.ts";
import { newestUserMessage } from "./frames.ts";
import { answerIdOf } from "./history.ts";
import { type ChatBody, clientTools, contentOf, responsesIn } from "./input.ts";
import type { ProjectOptions } from "./table.ts";

/** The agent and the thread of a chat. */
export interface ChatPlace {
  readonly thread_id: string;
  /** The agent's name in the request. */
  readonly agent: string;
  /** True if the page shows questions as text, because it has no other way to answer. */
  readonly asksInWords: boolean;
}

export interface PreparedChat extends Omit<ProjectOptions, "version" | "at"> {
  /** Starts or finds the run. The stream starts with that run. */
  readonly start: (stream: string) => Promise<RunRecord>;
  /** The current run of the turn, if it is later than the run that `start` returns. */
  readonly at?: RunRecord | undefined;
}

/**
 * Checks the chat and returns a function that starts its run. Throws `invalid_request` for an empty list, `not_found` for
 * an unknown agent, and `interrupt_closed` for answers that match no open question.
 */
export async function prepare(
  { runs, agents }: RouteServices,
  caller: Caller,
  { thread_id, agent, asksInWords }: ChatPlace,
  body: ChatBody,
): Promise<PreparedChat> {
  const sent = body.message ?? body.messages.at(-1);
  if (!sent)
    throw new AppError("invalid_request", "messages: the list is empty. Send at least the newest message.");
  const { name } = agents.find(agent);
  const turn = {
    ...{ thread_id, agent: name, request: { tools: clientTools(body) } },
    answersInWords: asksInWords ? answersToApprovals : undefined,
  };
  if (sent.role === "assistant") {
    const answers = (open: readonly Interrupt[]) => responsesIn(sent, open);
    const { as, start, thread } = await prepareTurn(runs, caller, { ...turn, answers });
    const [open, messages] = await Promise.all([thread.open(), thread.messages()]);
    // A repeated request would find questions that the run asked after reading these answers.
    const asked = as === "repeat" ? [] : open;
    return { start, asked, messageId: sent.id ?? answerIdOf(newestUserMessage(messages)) };
  }
  const message = messageOf({ id: sent.id, content: contentOf(sent) });
  const input = (thread: TurnThread) => turnInputOf(body, message, thread);
  const { start, at } = await prepareTurn(runs, caller, { ...turn, input });
  return { start, at, messageId: answerIdOf(message.id) };
}

const answersToApprovals = (text: string, open: readonly Interrupt[]) =>
  answersInWords(
    text,
    open.filter(({ kind }) => asksToApprove(kind)),
  );

/** Returns the user's newest message, which may also replace an earlier message or repeat a request. */
async function turnInputOf(body: ChatBody, message: UserMessage, thread: TurnThread): Promise<TurnInput> {
  const known = await thread.messages();
  const place = align(known, heldBy(body, message), {
    isRegenerated: body.trigger === "regenerate-message",
    isWhole: body.message === undefined,
  });
  return { messages: [message], place, idempotency_key: keyOfMessage(message, known) };
}

/** Returns the user's messages on the page, oldest first. */
function heldBy({ messages }: ChatBody, newest: SentMessage): SentMessage[] {
  const before = messages.slice(0, -1).filter(({ role }) => role === "user");
  return [...before.map(({ id }) => ({ id, content: "" })), newest];
}
