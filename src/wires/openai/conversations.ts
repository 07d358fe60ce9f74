// The thread of a request. Clients of this API name a conversation, or name none and send all that was said.

import type { FastifyBaseLogger } from "fastify";
import { AppError } from "../../agent/core/errors.ts";
import { type Message, type ToolMessage, type UserMessage, userMessages } from "../../agent/core/message.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { RunRecord, RunRequest, Thread } from "../../agent/core/records.ts";
import { align, type SentMessage } from "../../engine/runs/align.ts";
import {
  beginTurn,
  type FoundThread,
  type TurnInput,
  type TurnRequest,
} from "../../engine/runs/begin-turn.ts";
import { assertNoBranch } from "../../engine/runs/branches.ts";
import { keyOf, newestRun, settledRun } from "../../engine/runs/control.ts";
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

/** What a request says, in the terms of this server. */
export interface ChatInput {
  /** Default: the thread's own, else the first one configured. */
  readonly agent?: string;
  /** The messages that the client sends, oldest first: all of the conversation, or what is new. */
  readonly messages: readonly Message[];
  /** The results and decisions among what is sent, as answers to what a thread asks. */
  readonly answersTo: (open: readonly Interrupt[]) => Answer[];
  /** The results among what is sent. */
  readonly results: readonly ToolMessage[];
  /** Whether it ends with a result or a decision, not with a message. */
  readonly endsWithAnswer: boolean;
  readonly request: Omit<RunRequest, "input" | "answers">;
  readonly metadata: RunRecord["metadata"];
  readonly idempotency_key?: string;
}

/** A run to begin. */
export interface Beginning {
  readonly thread_id: string;
  /** Nothing but this request names the thread: it is deleted after the answer. */
  readonly isAnonymous: boolean;
  readonly start: (stream?: string) => Promise<RunRecord>;
}

/** Marks a thread that is deleted after the answer: no other thread of the user is answered or deleted with it. */
export const ANONYMOUS = { anonymous: true };
/** Marks a thread that no request has named: its calls may be answered by their ids alone. */
export const UNNAMED = { unnamed: true };

/** A thread to make. */
export interface NewThread {
  /** The id of a thread that requests name: it stays if the run is refused. Default: a new one. */
  readonly id?: string;
  readonly metadata: Thread["metadata"];
}

/** How long a run that its client has left may take to end before its thread is left to retention, in ms. */
const LAST_MS = 10_000;
/** The threads among which one is looked for that waits for an answer: those that changed last. */
const MAX_WAITING = 100;

export interface ChatServices extends Pick<RouteServices, "runs" | "stores" | "quotas"> {
  readonly log: FastifyBaseLogger;
}

/** The client sends all that it holds. The newest message of the user counts; the others tell its place. */
export async function named(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  said: ChatInput,
): Promise<Beginning> {
  const newest = userMessages(said.messages).at(-1);
  if (newest && hasHistory(said) && !(await services.stores.threads.get(owner, thread_id)))
    return made(services, owner, said.endsWithAnswer ? said : upTo(newest, said), {
      id: thread_id,
      metadata: {},
    });
  return begun(services, owner, thread_id, said, {
    answers: said.endsWithAnswer ? said.answersTo : undefined,
    says: (thread) => placedIn(services, owner, thread_id, said, thread),
    words: answersInWords,
  });
}

async function placedIn(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  said: ChatInput,
  thread: FoundThread,
): Promise<TurnInput> {
  const isLate = said.endsWithAnswer && (await thread.open()).length === 0;
  const late = isLate ? await unasked(services, owner, thread_id, said, thread) : [];
  if (late.length > 0) return asNew(late);
  const sent = userMessages(said.messages);
  const newest = sent.at(-1);
  if (!newest) throw new AppError("invalid_request", "messages: there is no message with the role `user`.");
  const known = await thread.messages();
  const held = await placed(owner.tenant, userMessages(known), sent);
  const place = align(known, held, { isWhole: true, isRegenerated: true });
  const system = known.length === 0 ? said.messages.filter(({ role }) => role === "system") : [];
  return { input: [...system, newest], place };
}

/** The client sends what is new. A system message is left out if it repeats the thread's newest one. */
export function continued(
  services: ChatServices,
  owner: Owner,
  thread_id: string,
  said: ChatInput,
): Promise<Beginning> {
  const answersQuestions = (text: string, open: readonly Interrupt[]) =>
    answersInWords(
      text,
      open.filter(({ kind }) => kind === "question"),
    );
  return begun(services, owner, thread_id, said, {
    answers: said.endsWithAnswer ? said.answersTo : undefined,
    says: async (thread) => {
      if (!said.endsWithAnswer) return asNew(await withoutRepeats(thread, said.messages));
      const isLate = (await thread.open()).length === 0;
      const late = isLate ? await unasked(services, owner, thread_id, said, thread) : [];
      if (late.length > 0) return asNew(late);
      throw new AppError(
        "interrupt_closed",
        "Nothing in this request answers an open call of the conversation.",
      );
    },
    words: answersQuestions,
  });
}

/** The results of calls that no one was asked for, as messages that continue the thread. */
async function unasked(
  { stores: { threads } }: ChatServices,
  owner: Owner,
  thread_id: string,
  { results }: ChatInput,
  found: FoundThread,
): Promise<Message[]> {
  const [thread, messages, newest] = await Promise.all([
    threads.get(owner, thread_id),
    found.messages(),
    found.newest(),
  ]);
  const awaited = thread ? awaitedCalls(thread, messages, []) : new Set<string>();
  return resultsFor({ messages, run_id: newest?.id, awaited }, results);
}

async function withoutRepeats(
  thread: FoundThread,
  messages: readonly Message[],
): Promise<readonly Message[]> {
  if (!messages.some(({ role }) => role === "system")) return messages;
  const newest = (await thread.messages()).findLast(({ role }) => role === "system");
  return messages.filter(({ role, content }) => role !== "system" || !isSame(content, newest?.content));
}

/** A thread made of what is sent: its end, from the user, is the run's input. */
export function made(
  services: ChatServices,
  owner: Owner,
  said: ChatInput,
  { id, metadata }: NewThread,
): Beginning {
  const thread_id = id ?? newThreadId();
  const isAnonymous = metadata === ANONYMOUS;
  const end = said.messages.findLastIndex(({ role }) => role === "assistant" || role === "tool") + 1;
  const thread = {
    id: thread_id,
    metadata,
    messages: said.messages.slice(0, end),
    ...omitUndefined({ agent: said.agent }),
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
      const { start } = await begun(services, owner, thread_id, said, {
        says: () => asNew(said.messages.slice(end)),
      });
      return start(stream).catch(async (error: unknown) => {
        if (!isAnonymous && id === undefined) await forget(services, owner, thread_id);
        throw error;
      });
    },
  };
}

/** The thread with this mark that waits for what is sent, if there is one. */
export async function waitingChat(
  services: ChatServices,
  owner: Owner,
  said: ChatInput,
  isMarked: (metadata: Thread["metadata"]) => boolean,
): Promise<Beginning | undefined> {
  const { threads } = services.stores;
  const { items } = await threads.list(owner, { limit: MAX_WAITING, status: "interrupted" });
  for (const { id: thread_id, metadata } of items) {
    if (!isMarked(metadata)) continue;
    const open = await openOn(threads, owner, thread_id);
    if (said.answersTo(open).length === 0) continue;
    const isAnonymous = metadata.anonymous === true;
    return { ...(await begun(services, owner, thread_id, said, { answers: said.answersTo })), isAnonymous };
  }
  return undefined;
}

async function begun(
  { runs }: ChatServices,
  owner: Owner,
  thread_id: string,
  { agent, request, metadata, idempotency_key }: ChatInput,
  turn: Pick<TurnRequest, "answers" | "says" | "words">,
): Promise<Beginning> {
  const { api_key, origin, ...rest } = request;
  const caller = omitUndefined({ owner, api_key, origin, idempotency_key });
  const command = { thread_id, request: rest, ...omitUndefined({ agent, ...turn }) };
  // Without metadata of its own, what answers a run keeps those of the run.
  const own = Object.keys(metadata).length > 0 ? { metadata } : {};
  const { start } = await beginTurn(runs, caller, { ...command, ...own });
  return { thread_id, isAnonymous: false, start };
}

/** Deletes the thread of one request, unless it waits for the client. `isLast`: the client answers by the whole chat, or not at all. */
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

/** The title of the conversation of this name, if there is one. */
export async function titleOf(
  { stores: { threads } }: ChatServices,
  owner: Owner,
  name: string | undefined,
): Promise<string | undefined> {
  return name === undefined ? undefined : (await threads.get(owner, threadIdOf(name)))?.title;
}

const asNew = (input: readonly Message[]): TurnInput => ({ input, place: { as: "new" } });

/** The chat was begun with another model, or its name came late. */
const hasHistory = ({ messages }: ChatInput) =>
  messages.some(({ role }) => role === "assistant" || role === "tool");

/** Without what follows the user's newest message: another answer to it is wanted. */
const upTo = (newest: UserMessage, said: ChatInput): ChatInput => ({
  ...said,
  messages: said.messages.slice(0, said.messages.indexOf(newest) + 1),
});

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/**
 * The sent messages with the ids of the thread's that say the same, in order. The newest has an id only when it is sent
 * alone and says what the thread begins with. Elsewhere it may say again what was said.
 */
async function placed(
  tenant: string,
  known: readonly UserMessage[],
  sent: readonly UserMessage[],
): Promise<SentMessage[]> {
  const texts = await mapInTicks(tenant, known, textOfContent);
  // Of the messages with a text, the earliest comes last.
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
