// The thread of a request. Clients of this API either name a conversation or send all messages without a name.

import type { FastifyBaseLogger } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { type Message, type ToolMessage, type UserMessage, userMessages } from "../../agent/core/message.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { RunRecord, RunRequest, Thread } from "../../agent/core/records.ts";
import { align, type SentMessage } from "../../engine/runs/align.ts";
import { assertNoBranch } from "../../engine/runs/branches.ts";
import { keyOf, newestRun, settledRun } from "../../engine/runs/control.ts";
import {
  prepareTurn,
  type TurnInput,
  type TurnRequest,
  type TurnThread,
} from "../../engine/runs/prepare-turn.ts";
import { awaitedCalls } from "../../engine/runs/rewrite.ts";
import { openOn } from "../../engine/runs/start.ts";
import { deleteThreadTree } from "../../engine/runs/thread-actions.ts";
import { createWithMessages } from "../../engine/runs/thread-bytes.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { threadIdOf } from "../messages.ts";
import { answersInWords } from "../words.ts";
import { resultsFor } from "./pairing.ts";

/** A request in Skein's terms. */
export interface ChatInput {
  /** Default: the thread's own agent or, for a new thread, the first configured agent. */
  readonly agent?: string;
  /** The client's messages, oldest first: the whole conversation, or only new messages. */
  readonly messages: readonly Message[];
  /** Returns the results and decisions in the request, as answers to a thread's open interrupts. */
  readonly answersTo: (open: readonly Interrupt[]) => Answer[];
  /** The results in the request. */
  readonly results: readonly ToolMessage[];
  /** True if the request ends with a result or a decision, not with a message. */
  readonly endsWithAnswer: boolean;
  readonly request: Omit<RunRequest, "input" | "answers">;
  readonly metadata: RunRecord["metadata"];
  readonly idempotency_key?: string;
}

/** A run to start, and its thread. */
export interface PreparedConversation {
  readonly thread_id: string;
  /** True if only this request knows the thread, which is then deleted after the response. */
  readonly isAnonymous: boolean;
  readonly start: (stream?: string) => Promise<RunRecord>;
}

/**
 * Marks a thread that is deleted after the response. Without this mark, a thread is never answered or deleted in this
 * way.
 */
export const ANONYMOUS = { anonymous: true };
/** Marks a thread that no request has named. Clients can answer its calls by their ids alone. */
export const UNNAMED = { unnamed: true };

/** A thread to create. */
export interface NewThread {
  /** The id of a thread that requests name. The thread is kept if the run is refused. Default: a new id. */
  readonly id?: string;
  readonly metadata: Thread["metadata"];
}

/** The maximum time for the run of a disconnected client to end, in ms. After that, retention deletes the thread. */
const LAST_MS = 10_000;
/**
 * The maximum number of waiting threads to search for the thread that the request answers, most recently changed first.
 */
const MAX_WAITING = 100;

export interface ChatServices extends Pick<RouteServices, "runs" | "stores" | "quotas"> {
  readonly log: FastifyBaseLogger;
}

/**
 * Continues a named conversation whose client sends all messages. Only the newest user message counts; the others
 * determine its position.
 */
export async function prepareNamed(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  chat: ChatInput,
): Promise<PreparedConversation> {
  const newest = userMessages(chat.messages).at(-1);
  if (newest && hasHistory(chat) && !(await services.stores.threads.get(owner, thread_id)))
    return prepareNew(services, owner, chat.endsWithAnswer ? chat : upTo(newest, chat), {
      id: thread_id,
      metadata: {},
    });
  return prepare(services, owner, thread_id, chat, {
    answers: chat.endsWithAnswer ? chat.answersTo : undefined,
    input: (thread) => turnInputOf(services, owner, thread_id, chat, thread),
    answersInWords,
  });
}

async function turnInputOf(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  chat: ChatInput,
  thread: TurnThread,
): Promise<TurnInput> {
  const isLate = chat.endsWithAnswer && (await thread.open()).length === 0;
  const late = isLate ? await unasked(services, owner, thread_id, chat, thread) : [];
  if (late.length > 0) return asNew(late);
  const sent = userMessages(chat.messages);
  const newest = sent.at(-1);
  if (!newest)
    throw new AppError("invalid_request", "messages: must contain a message with the role `user`.");
  const known = await thread.messages();
  const held = await placed(owner.tenant, userMessages(known), sent);
  const place = align(known, held, { isWhole: true, isRegenerated: true });
  const system = known.length === 0 ? chat.messages.filter(({ role }) => role === "system") : [];
  return { messages: [...system, newest], place };
}

/**
 * Continues a conversation whose client sends only new messages. Omits a system message that repeats the thread's
 * newest one.
 */
export function prepareNext(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  chat: ChatInput,
): Promise<PreparedConversation> {
  const answersToQuestions = (text: string, open: readonly Interrupt[]) =>
    answersInWords(
      text,
      open.filter(({ kind }) => kind === "question"),
    );
  return prepare(services, owner, thread_id, chat, {
    answers: chat.endsWithAnswer ? chat.answersTo : undefined,
    input: async (thread) => {
      if (!chat.endsWithAnswer) return asNew(await withoutRepeats(thread, chat.messages));
      const isLate = (await thread.open()).length === 0;
      const late = isLate ? await unasked(services, owner, thread_id, chat, thread) : [];
      if (late.length > 0) return asNew(late);
      throw new AppError("interrupt_closed", "This request answers no open call of the conversation.");
    },
    answersInWords: answersToQuestions,
  });
}

/** Returns the results of calls that are not waiting for an answer, as messages that continue the thread. */
async function unasked(
  { stores: { threads } }: ChatServices,
  owner: Owner,
  thread_id: string,
  { results }: ChatInput,
  found: TurnThread,
): Promise<Message[]> {
  const [thread, messages, newest] = await Promise.all([
    threads.get(owner, thread_id),
    found.messages(),
    found.newest(),
  ]);
  const awaited = thread ? awaitedCalls(thread, messages, []) : new Set<string>();
  return resultsFor({ messages, run_id: newest?.id, awaited }, results);
}

async function withoutRepeats(thread: TurnThread, messages: readonly Message[]): Promise<readonly Message[]> {
  if (!messages.some(({ role }) => role === "system")) return messages;
  const newest = (await thread.messages()).findLast(({ role }) => role === "system");
  return messages.filter(({ role, content }) => role !== "system" || !isSame(content, newest?.content));
}

/** Creates a thread from the sent messages. The last user messages are the run's input. */
export function prepareNew(
  services: ChatServices,
  owner: Owner,
  chat: ChatInput,
  { id, metadata }: NewThread,
): PreparedConversation {
  const thread_id = id ?? newThreadId();
  const isAnonymous = metadata === ANONYMOUS;
  const end = chat.messages.findLastIndex(({ role }) => role === "assistant" || role === "tool") + 1;
  const thread = {
    id: thread_id,
    metadata,
    messages: chat.messages.slice(0, end),
    ...omitUndefined({ agent: chat.agent }),
  };
  return {
    thread_id,
    isAnonymous,
    async start(stream) {
      assertNoBranch(thread_id);
      const { runs, stores, quotas } = services;
      await createWithMessages(
        { threads: stores.threads, quotas, threadBytes: runs.threadBytes },
        owner,
        thread,
      );
      const { start } = await prepare(services, owner, thread_id, chat, {
        input: () => asNew(chat.messages.slice(end)),
      });
      return start(stream).catch(async (error: unknown) => {
        if (!isAnonymous && id === undefined) await forget(services, owner, thread_id);
        throw error;
      });
    },
  };
}

/** Finds the marked thread that is waiting for the results or decisions in the request, if any. */
export async function prepareWaiting(
  services: ChatServices,
  owner: Owner,
  chat: ChatInput,
  isMarked: (metadata: Thread["metadata"]) => boolean,
): Promise<PreparedConversation | undefined> {
  const { threads } = services.stores;
  const { items } = await threads.list(owner, { limit: MAX_WAITING, status: "interrupted" });
  for (const { id: thread_id, metadata } of items) {
    if (!isMarked(metadata)) continue;
    const open = await openOn(threads, owner, thread_id);
    if (chat.answersTo(open).length === 0) continue;
    const isAnonymous = metadata.anonymous === true;
    return { ...(await prepare(services, owner, thread_id, chat, { answers: chat.answersTo })), isAnonymous };
  }
  return undefined;
}

async function prepare(
  { runs }: ChatServices,
  owner: Owner,
  thread_id: string,
  { agent, request, metadata, idempotency_key }: ChatInput,
  turn: Pick<TurnRequest, "answers" | "input" | "answersInWords">,
): Promise<PreparedConversation> {
  const { api_key, origin, ...rest } = request;
  const caller = omitUndefined({ owner, api_key, origin, idempotency_key });
  const command = { thread_id, request: rest, ...omitUndefined({ agent, ...turn }) };
  // A run that answers another one keeps its metadata, unless the request has its own metadata.
  const own = Object.keys(metadata).length > 0 ? { metadata } : {};
  const { start } = await prepareTurn(runs, caller, { ...command, ...own });
  return { thread_id, isAnonymous: false, start };
}

/**
 * Deletes the thread of one request, unless it is waiting for the client. If `isLast` is true, the thread is deleted
 * even if it is waiting, because the client answers either with the whole chat or not at all.
 */
export async function forget(
  { runs, stores, quotas, log }: ChatServices,
  owner: Owner,
  thread_id: string,
  { isLast = false } = {},
): Promise<void> {
  try {
    const newest = await newestRun(stores.runs, owner, thread_id);
    const run = newest && (await settledRun(runs, keyOf(owner, newest), AbortSignal.timeout(LAST_MS)));
    if (isLast || run?.status !== "interrupted")
      await deleteThreadTree({ threads: stores.threads, quotas }, owner, thread_id);
  } catch (error) {
    log.warn({ err: error, thread_id }, "the thread of an anonymous chat was not deleted");
  }
}

/** Returns the title of the conversation with this name, if it exists. */
export async function titleOf(
  { stores: { threads } }: ChatServices,
  owner: Owner,
  name: string | undefined,
): Promise<string | undefined> {
  return name === undefined ? undefined : (await threads.get(owner, threadIdOf(name)))?.title;
}

const asNew = (messages: readonly Message[]): TurnInput => ({ messages, place: { as: "new" } });

/** Returns true if the chat started with another model, or before it had a name. */
const hasHistory = ({ messages }: ChatInput) =>
  messages.some(({ role }) => role === "assistant" || role === "tool");

/** Removes the messages after the user's newest message, which gets another answer. */
const upTo = (newest: UserMessage, chat: ChatInput): ChatInput => ({
  ...chat,
  messages: chat.messages.slice(0, chat.messages.indexOf(newest) + 1),
});

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/**
 * Gives the sent messages the ids of the thread's messages with the same content, in order. The newest message gets an
 * id only if it is the only one and has the same content as the thread's first message. Otherwise, it may be a new
 * message that repeats an earlier text.
 */
async function placed(
  tenant: string,
  known: readonly UserMessage[],
  sent: readonly UserMessage[],
): Promise<SentMessage[]> {
  const texts = await mapInTicks(tenant, known, textOfContent);
  // Among messages with the same text, the earliest comes last.
  const places = Map.groupBy([...texts.keys()].reverse(), (at) => texts[at]);
  let next = 0;
  return mapInTicks(tenant, sent, (message, index) => {
    const { content } = message;
    const mayBeKnown = index < sent.length - 1 || sent.length === 1;
    const same = (mayBeKnown && places.get(textOfContent(message))) || [];
    while ((same.at(-1) ?? next) < next) same.pop();
    const at = same.pop();
    if (at === undefined || (sent.length === 1 && at > 0)) return { content };
    next = at + 1;
    return { id: known[at]?.id, content };
  });
}

const textOfContent = ({ content }: UserMessage) => JSON.stringify(content);
