// What a chat's newest message begins: a run for what the user says, or one that continues with the answers in it.

import { AppError } from "../../../core/errors.ts";
import { textOf } from "../../../core/message.ts";
import type { Origin, RunRecord } from "../../../core/records.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import type { Answer } from "../../../protocol/interrupt.ts";
import { newestRun } from "../../../runs/control.ts";
import { openOn, type RunCommand, resumeRun, startRun } from "../../../runs/start.ts";
import { turnStart } from "../../../runs/turn.ts";
import type { RouteServices } from "../../services.ts";
import { align, keyOfMessage, messageOf, type SentMessage } from "../messages.ts";
import { answersInWords } from "../words.ts";
import { newestUserMessage } from "./frames.ts";
import { answerIdOf, answersIn, type ChatBody, clientTools, contentOf, type UIMessage } from "./input.ts";
import type { ProjectOptions } from "./project.ts";

/** Who sends a chat, to which agent on which thread. */
export interface Sender {
  readonly owner: Owner;
  readonly thread_id: string;
  /** As the request names it. */
  readonly agent: string;
  /** The page asks in words: it has no other way to answer. */
  readonly asksInWords: boolean;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly idempotency_key?: string | undefined;
}

export interface Begun extends Omit<ProjectOptions, "version" | "at"> {
  /** Starts the run, or finds it. The stream begins with it. */
  readonly start: (stream: string) => Promise<RunRecord>;
  /** A later run of its turn, which the turn is at. */
  readonly at?: RunRecord;
}

/**
 * Starts nothing yet. Throws `invalid_request` for an empty list, `not_found` for an unknown agent, and `interrupt_closed` for
 * answers to no open question.
 */
export async function beginning(services: RouteServices, sender: Sender, body: ChatBody): Promise<Begun> {
  const sent = body.message ?? body.messages.at(-1);
  if (!sent)
    throw new AppError("invalid_request", "messages: the list is empty; send at least the newest message.");
  const { name: agent } = services.agents.find(sender.agent);
  return sent.role === "assistant"
    ? answering(services, sender, body, sent)
    : saying(services, { ...sender, agent }, body, sent);
}

/** The newest message is the user's: it begins a run, takes the place of an earlier one, or is a repeat. */
async function saying(
  services: RouteServices,
  sender: Sender,
  body: ChatBody,
  sent: UIMessage,
): Promise<Begun> {
  const { stores, runs } = services;
  const { owner, thread_id, agent, api_key, origin, idempotency_key } = sender;
  const known = await stores.threads.messages(owner, thread_id);
  const message = messageOf({ id: sent.id, content: contentOf(sent) });
  const place = align(known, heldBy(body, message), {
    isRegenerated: body.trigger === "regenerate-message",
    isWhole: body.message === undefined,
  });
  const messageId = answerIdOf(message.id);
  if (place.as === "repeat") {
    const newest = await newestRun(stores.runs, owner, thread_id);
    if (newest) {
      const from = await turnStart({ stores }, owner, newest);
      return { start: async () => from, messageId, at: newest };
    }
  }
  const answers = place.as === "new" ? await answersSaid(services, sender, sent) : [];
  if (answers.length > 0) return { start: resuming(services, sender, body, answers), messageId };
  const command: RunCommand = {
    thread_id,
    agent,
    metadata: {},
    on_busy: "reject",
    request: {
      input: [message],
      settings: {},
      ...omitUndefined({ tools: clientTools(body), api_key, origin }),
    },
    ...(place.as === "replacement" ? { rewind_to: place.of } : {}),
    idempotency_key: idempotency_key ?? keyOfMessage(message, known),
  };
  return { start: (stream) => startRun(runs, owner, { ...command, stream }), messageId };
}

/** The newest message is the assistant's: its parts hold answers. */
async function answering(
  services: RouteServices,
  sender: Sender,
  body: ChatBody,
  sent: UIMessage,
): Promise<Begun> {
  const { threads } = services.stores;
  const { owner, thread_id } = sender;
  const open = await openOn(threads, owner, thread_id);
  const answers = answersIn(sent, open);
  if (answers.length === 0)
    throw new AppError("interrupt_closed", "Nothing in this message answers an open question of the chat.");
  return {
    start: resuming(services, sender, body, answers),
    messageId: sent.id ?? answerIdOf(await newestUserMessage(threads, owner, thread_id)),
    asked: open,
  };
}

/** What the user's words answer in a chat that asks in words. */
async function answersSaid(
  { stores }: RouteServices,
  { owner, thread_id, asksInWords }: Sender,
  sent: UIMessage,
): Promise<Answer[]> {
  if (!asksInWords) return [];
  const open = await openOn(stores.threads, owner, thread_id);
  const approvals = open.filter(({ kind }) => kind === "approval");
  return answersInWords(textOf(contentOf(sent)), approvals);
}

function resuming(
  { stores, runs }: RouteServices,
  { owner, thread_id, api_key, origin, idempotency_key }: Sender,
  body: ChatBody,
  answers: Answer[],
): Begun["start"] {
  return async (stream) => {
    const newest = await newestRun(stores.runs, owner, thread_id);
    return resumeRun(runs, owner, {
      thread_id,
      run_id: newest?.id ?? "",
      answers,
      stream,
      ...omitUndefined({ tools: clientTools(body), api_key, origin, idempotency_key }),
    });
  };
}

/** The user's messages that the page holds, the newest last. */
function heldBy({ messages }: ChatBody, newest: SentMessage): SentMessage[] {
  const before = messages.slice(0, -1).filter(({ role }) => role === "user");
  return [...before.map(({ id }) => ({ id, content: "" })), newest];
}
