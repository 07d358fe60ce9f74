// Prepares a turn for every wire: from answers to open questions, from the user's message, or as a repeat of the turn that
// the same request began earlier. Reads the thread only once.

import { createHash } from "node:crypto";
import { AppError } from "../../agent/core/errors.ts";
import { type Message, textOf, type UserMessage } from "../../agent/core/message.ts";
import type { Origin, RunRecord, RunRequest } from "../../agent/core/records.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import { admit } from "../quotas/holds.ts";
import type { Alignment } from "./align.ts";
import { newestRun } from "./control.ts";
import type { Runs } from "./executor.ts";
import { openIn, type ReadableThread, type RunCommand, resumeRun, startRun } from "./start.ts";
import { turnStart } from "./turn.ts";

/** The caller of a request that starts a turn. */
export interface Caller {
  readonly owner: Owner;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  readonly origin?: Origin | undefined;
  /** Makes repeated requests return the same run. Defaults to the key of the user's message. */
  readonly idempotency_key?: string | undefined;
}

/** A thread at the beginning of a turn. Each part is read only once, when it is first used. */
export interface TurnThread extends ReadableThread {
  /** Returns the questions that wait for an answer. */
  open(): Promise<readonly Interrupt[]>;
  newest(): Promise<RunRecord | undefined>;
}

/** The user's input. */
export interface TurnInput {
  /** The run's input, ending with the user's newest message. */
  readonly messages: readonly Message[];
  readonly place: Alignment;
  readonly idempotency_key?: string | undefined;
}

/** Answers take precedence. Without answers, `input` begins a run, unless its text answers a question. */
export interface TurnRequest extends Pick<RunCommand, "thread_id" | "agent"> {
  /** Returns the answers in the request. Can throw. */
  readonly answers?: ((open: readonly Interrupt[]) => Answer[]) | undefined;
  /** If there are no answers, the waiting run continues and asks again. */
  readonly asksAgain?: true;
  /** Returns the user's input. If absent, the request can only contain answers. Can throw. */
  readonly input?: ((thread: TurnThread) => TurnInput | Promise<TurnInput>) | undefined;
  /**
   * Returns the answers that the text of a new message contains. By default there are none, so the message begins a
   * run.
   */
  readonly answersInWords?: ((text: string, open: readonly Interrupt[]) => Answer[]) | undefined;
  /** Defaults to `reject`. */
  readonly on_busy?: RunCommand["on_busy"];
  /** Defaults to the metadata of the interrupted run for answers, and to none otherwise. */
  readonly metadata?: RunCommand["metadata"];
  readonly request?: Partial<Omit<RunRequest, "input" | "answers">>;
}

export interface PreparedTurn {
  /** `repeat`: the same request was sent before and its turn is in progress or has ended, so nothing begins. */
  readonly as: "message" | "answers" | "repeat";
  readonly thread: TurnThread;
  /** The current run of a repeated turn. If answers are repeated, this is the run that they began. */
  readonly at?: RunRecord;
  /** The first message that the run removes from the thread. */
  readonly replaces?: string;
  /**
   * Starts or finds the run. For a repeated message, finds the first run of its turn. `stream` is the id of the stream
   * that shows the run, used for quotas.
   */
  readonly start: (stream?: string) => Promise<RunRecord>;
}

/**
 * Prepares a turn without starting it. A request with a known key is a repeat, even if it would be refused now. Throws
 * `interrupt_closed` for a request with neither answers nor a message.
 */
export async function prepareTurn(runs: Runs, caller: Caller, turn: TurnRequest): Promise<PreparedTurn> {
  const thread = findThread(runs.stores, caller.owner, turn.thread_id);
  return prepare(runs, caller, turn, thread).catch(async (error: unknown) => {
    const { owner, idempotency_key: key } = caller;
    const known = key === undefined ? undefined : await runs.stores.runs.known(owner, turn.thread_id, key);
    if (!known) throw error;
    return prepareRepeat(runs, caller, { thread, at: known }, async () => known);
  });
}

async function prepare(
  runs: Runs,
  caller: Caller,
  turn: TurnRequest,
  thread: TurnThread,
): Promise<PreparedTurn> {
  const answers = turn.answers?.(await thread.open()) ?? [];
  if (answers.length > 0 || turn.asksAgain) return prepareAnswers(runs, caller, turn, thread, answers);
  if (!turn.input)
    throw new AppError(
      "interrupt_closed",
      "This request answers no open question. It may have been answered already; read the thread again.",
    );
  const input = await turn.input(thread);
  if (input.place.as === "repeat") {
    const at = await thread.newest();
    if (at && !(await hasReadNothing(at, thread)))
      return prepareRepeat(runs, caller, { thread, at }, () => turnStart(runs, caller.owner, at));
  }
  return (
    (await prepareAnswersInWords(runs, caller, turn, thread, input)) ??
    prepareInput(runs, caller, turn, thread, input)
  );
}

/** Handles a new message whose text answers an open question, or answered it when the message was first sent. */
async function prepareAnswersInWords(
  runs: Runs,
  caller: Caller,
  turn: TurnRequest,
  thread: TurnThread,
  { messages, place, idempotency_key }: TurnInput,
): Promise<PreparedTurn | undefined> {
  const newest = messages.at(-1);
  if (!turn.answersInWords || place.as !== "new" || newest?.role !== "user") return undefined;
  const open = await thread.open();
  const at = idempotency_key ? await resumedBy(runs, caller, thread, newest) : undefined;
  // The run may have asked the open question after reading this message.
  if (at) return prepareRepeat(runs, caller, { thread, at }, async () => at);
  const answers = turn.answersInWords(textOf(newest.content), open);
  return answers.length > 0 ? prepareAnswers(runs, caller, turn, thread, answers, newest) : undefined;
}

/**
 * Returns the newest run if the text of this message resumed it. The message is then a repeat, although no thread
 * contains it.
 */
async function resumedBy(
  { stores }: Runs,
  { owner }: Caller,
  thread: TurnThread,
  message: UserMessage,
): Promise<RunRecord | undefined> {
  const newest = await thread.newest();
  if (newest?.resumes === undefined) return undefined;
  const known = await stores.runs.known(owner, newest.thread_id, keyOfWords(message, newest.resumes));
  return known?.id === newest.id ? known : undefined;
}

/** An edited message has a different text, and therefore a different key. */
const keyOfWords = ({ id, content }: UserMessage, run_id: string) =>
  `words:${id}:${run_id}:${createHash("sha256").update(textOf(content)).digest("base64url")}`;

/** Starts nothing. Counts only the stream that shows the run. */
function prepareRepeat(
  { quotas }: Runs,
  { owner }: Caller,
  found: Required<Pick<PreparedTurn, "thread" | "at">>,
  find: () => Promise<RunRecord>,
): PreparedTurn {
  const start = async (stream?: string) => {
    if (quotas && stream !== undefined) await admit(quotas, owner, { stream });
    return find();
  };
  return { as: "repeat", ...found, start };
}

/** Returns true if the run only wrote to the thread, so no model has read the thread's last message. */
async function hasReadNothing({ status, usage }: RunRecord, thread: TurnThread): Promise<boolean> {
  if (status !== "success" || usage.input_tokens + usage.output_tokens > 0) return false;
  return (await thread.messages()).at(-1)?.role === "user";
}

export function findThread({ threads, runs }: Stores, owner: Owner, thread_id: string): TurnThread {
  const found: ReadableThread = {
    messages: once(() => threads.messages(owner, thread_id)),
    state: once(() => threads.state(owner, thread_id)),
  };
  return {
    ...found,
    open: once(() => openIn(found)),
    newest: once(() => newestRun(runs, owner, thread_id)),
  };
}

function once<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read();
    return reading;
  };
}

async function prepareAnswers(
  runs: Runs,
  { owner, idempotency_key, ...caller }: Caller,
  { thread_id, metadata, request = {} }: TurnRequest,
  thread: TurnThread,
  answers: Answer[],
  inWords?: UserMessage,
): Promise<PreparedTurn> {
  const [open, newest] = await Promise.all([thread.open(), thread.newest()]);
  const run_id = newest?.id ?? open[0]?.run_id ?? "";
  const { tools, unattended } = request;
  const key = idempotency_key ?? (inWords && keyOfWords(inWords, run_id));
  const command = {
    thread_id,
    run_id,
    answers,
    open,
    ...omitUndefined({ metadata, tools, unattended, ...caller, idempotency_key: key }),
  };
  return { as: "answers", thread, start: (stream) => resumeRun(runs, owner, { ...command, stream }) };
}

/** A repeated message that no known run has read is sent again at its own position. */
function replacedBy(place: Alignment, messages: readonly Message[]): string | undefined {
  if (place.as === "replacement") return place.of;
  return place.as === "repeat" ? messages.at(-1)?.id : undefined;
}

function prepareInput(
  runs: Runs,
  { owner, idempotency_key, ...caller }: Caller,
  { thread_id, agent, metadata = {}, on_busy = "reject", request }: TurnRequest,
  thread: TurnThread,
  { messages, place, idempotency_key: key }: TurnInput,
): PreparedTurn {
  const replaces = replacedBy(place, messages);
  const command: RunCommand = {
    ...{ thread_id, metadata, on_busy },
    request: { settings: {}, ...request, ...omitUndefined(caller), input: [...messages] },
    ...omitUndefined({ agent, rewind_to: replaces, idempotency_key: idempotency_key ?? key }),
  };
  return {
    as: "message",
    thread,
    ...omitUndefined({ replaces }),
    start: (stream) => startRun(runs, owner, { ...command, stream }),
  };
}
