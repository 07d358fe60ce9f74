// Chooses the thread of a request's response: the thread of a response or of a conversation, a fork, or a new thread.

import type { FastifyRequest } from "fastify";
import { AppError } from "../../../agent/core/errors.ts";
import { type Message, systemMessage, toolMessages } from "../../../agent/core/message.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import type { Stores } from "../../../agent/core/stores.ts";
import { newestRun } from "../../../engine/runs/control.ts";
import { forkThread } from "../../../engine/runs/thread-actions.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { StreamEvent } from "../../../protocol/event.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf, sentBy } from "../../../server/auth/guard.ts";
import { expired, idempotencyKey } from "../../../server/http/run-stream.ts";
import { foldSoFar } from "../../fold.ts";
import { threadIdOf } from "../../messages.ts";
import {
  ANONYMOUS,
  type ChatInput,
  type ChatServices,
  type PreparedConversation,
  prepareNamed,
  prepareNew,
  prepareNext,
  prepareWaiting,
  UNNAMED,
} from "../conversations.ts";
import { conversationOf, refused } from "../given.ts";
import { isBesideChat } from "../side-requests.ts";
import type { FunctionChoice } from "../tool-choice.ts";
import { runOfResponse } from "./ids.ts";
import {
  askedIn,
  isAnswer,
  isMessage,
  itemsOf,
  messagesOf,
  type ResponseBody,
  responsesIn,
  schemaOf,
  settingsOf,
} from "./input.ts";
import { noConversation } from "./resources/conversations.ts";

type ResponseRequest = FastifyRequest<{ Body: ResponseBody }>;

/** Prepares the run of a request, on the thread that the request names or continues. */
export async function prepareResponse(
  services: ChatServices,
  request: ResponseRequest,
  choice: FunctionChoice,
): Promise<PreparedConversation> {
  const owner = ownerOf(request);
  const { body, headers } = request;
  const chat = await chatInputOf(request, choice);
  const { previous_response_id, conversation, metadata } = body;
  if (previous_response_id) return prepareAfter(services, owner, previous_response_id, onlyNew(chat, body));
  if (conversation) {
    const id = typeof conversation === "string" ? conversation : conversation.id;
    if (await services.stores.threads.get(owner, id))
      return prepareNext(services, owner, id, onlyNew(chat, body));
    throw noConversation(id);
  }
  const name = isBesideChat(headers, askedIn(body)) ? undefined : conversationOf(headers, metadata);
  if (name !== undefined) return prepareNamed(services, owner, threadIdOf(name), chat);
  const isKept = body.store !== false;
  const waiting = chat.endsWithAnswer
    ? await prepareWaiting(
        services,
        owner,
        chat,
        (marks) => (isKept ? marks.unnamed : marks.anonymous) === true,
      )
    : undefined;
  return waiting ?? prepareNew(services, owner, chat, { metadata: isKept ? UNNAMED : ANONYMOUS });
}

/** Continues the response's thread. If the thread has later runs, continues a fork up to the response. */
async function prepareAfter(
  services: ChatServices,
  owner: Owner,
  id: string,
  chat: ChatInput,
): Promise<PreparedConversation> {
  const { stores, quotas } = services;
  const { threads, runs } = stores;
  const named = runOfResponse(id);
  const run = named && (await runs.get(owner, named.thread_id, named.run_id));
  if (!run)
    throw new AppError("not_found", `There is no response \`${id}\`.`, {
      details: { param: "previous_response_id" },
    });
  const { thread_id } = run;
  const newest = await newestRun(runs, owner, thread_id);
  if (newest?.id === run.id) return prepareNext(services, owner, thread_id, chat);
  const { last, message_id } = await endOf(stores, owner, run);
  // The thread refuses an answer to a question that has been answered meanwhile.
  if (newest?.id === last.id || chat.endsWithAnswer) return prepareNext(services, owner, thread_id, chat);
  const fork = await forkThread({ threads, quotas }, { owner, threadId: thread_id }, { message_id });
  return prepareNext(services, owner, fork.id, chat);
}

/** Returns the last run of a response and its last message. Throws `events_expired`. */
async function endOf(
  stores: Stores,
  owner: Owner,
  from: RunRecord,
): Promise<{ last: RunRecord; message_id: string }> {
  let message_id: string | undefined;
  const fold = (event: StreamEvent) => {
    if (event.event === "on_message" && !event.path?.length) message_id = event.data.message.id;
    return [];
  };
  const messages = () => Promise.reject(expired());
  const last = await foldSoFar(stores, { owner, from, fold, unit: "turn", messages });
  if (message_id === undefined) throw expired();
  return { last, message_id };
}

const isInput = ({ role }: Message) => role === "user" || role === "system";

/**
 * Returns a run's messages, starting with its input, by the times of the messages. Used for a run whose events have
 * expired.
 */
export async function messagesSince(
  { threads }: Pick<Stores, "threads">,
  owner: Owner,
  { thread_id, created_at, ended_at }: RunRecord,
): Promise<Message[]> {
  const all = (await threads.messages(owner, thread_id)).filter(
    (each) => !ended_at || each.created_at <= ended_at,
  );
  // The input is older than its run.
  let start = all.findIndex((each) => each.created_at >= created_at);
  for (let before = all[start - 1]; before && isInput(before); before = all[start - 1]) start--;
  return start < 0 ? [] : all.slice(start);
}

/** Returns the input of a response, and the user's messages during it. */
export async function inputOf(stores: Stores, owner: Owner, from: RunRecord): Promise<Message[]> {
  const input: Message[] = [];
  const fold = (event: StreamEvent) => {
    if (event.event === "on_message" && !event.path?.length && isInput(event.data.message))
      input.push(event.data.message);
    return [];
  };
  const messages = () => messagesSince(stores, owner, from);
  await foldSoFar(stores, { owner, from, fold, unit: "turn", messages });
  return input;
}

async function chatInputOf(request: ResponseRequest, choice: FunctionChoice): Promise<ChatInput> {
  const { body } = request;
  const output_schema = choice.answer?.schema ?? schemaOf(body);
  const items = itemsOf(body);
  const last = items.at(-1);
  if (!last) throw refused("input", "is missing. Send a text or items.");
  const instructions = body.instructions ? [systemMessage(body.instructions)] : [];
  const messages = await messagesOf(ownerOf(request).tenant, items);
  return {
    messages: [...instructions, ...messages],
    answersTo: (open) => responsesIn(items, open),
    results: toolMessages(messages),
    endsWithAnswer: isAnswer(last),
    request: {
      settings: settingsOf(body, choice),
      ...omitUndefined({ tools: choice.tools, output_schema, ...sentBy(request) }),
    },
    metadata: body.metadata ?? {},
    ...omitUndefined({ agent: body.model ?? undefined, idempotency_key: idempotencyKey(request) }),
  };
}

/**
 * The thread has the earlier messages. Throws `invalid_request` for assistant messages, and for answers together with a
 * message, because a run cannot both resume the last one and start with a message.
 */
function onlyNew(chat: ChatInput, body: ResponseBody): ChatInput {
  if (chat.messages.some(({ role }) => role === "assistant"))
    throw refused("input", "the conversation already has the assistant's messages. Send only new items.");
  const items = itemsOf(body);
  if (items.some(isAnswer) && items.some(isMessage))
    throw refused(
      "input",
      "answers and a new message cannot be sent together. Send the answers first, then the message.",
    );
  return { ...chat, messages: chat.messages.filter(({ role }) => role !== "tool") };
}
