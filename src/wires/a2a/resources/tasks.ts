// Tasks. A task is a turn, starting with its first run. Only the runs themselves are stored.

import type { Message } from "../../../agent/core/message.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import type { Stores } from "../../../agent/core/stores.ts";
import { keyOf } from "../../../engine/runs/control.ts";
import { messagesIn, readLogRange } from "../../../engine/runs/follow.ts";
import { openOn } from "../../../engine/runs/start.ts";
import { failureOf, kindOfEnd } from "../../../protocol/end.ts";
import { Id, type Owner } from "../../../protocol/ids.ts";
import type { Interrupt } from "../../../protocol/interrupt.ts";
import { A2A, RpcError } from "../errors.ts";
import { failure, question, statusOf, type TaskRef, type TaskState, told } from "../history.ts";

/** Contains the ids of the thread and the first run, because clients look up tasks by id alone. */
export const taskIdOf = ({ thread_id, id }: RunRecord) => `${thread_id}.${id}`;

export const refOf = (first: RunRecord): TaskRef => ({
  taskId: taskIdOf(first),
  contextId: first.thread_id,
});

/** The current state of a task. */
export interface TaskNow {
  /** The task's runs, oldest first. The last one determines the state of the task. */
  readonly first: RunRecord;
  readonly runs: readonly RunRecord[];
  readonly state: TaskState;
  /** The open questions of the task. */
  readonly open: readonly Interrupt[];
}

/** The maximum number of runs to read from a thread. */
const MAX_RUNS = 1000;
/** The maximum number of a user's threads to list without a context, most recently changed first. */
const MAX_THREADS = 100;

const ENDED: ReadonlySet<TaskState> = new Set(["COMPLETED", "CANCELED", "FAILED"]);
export const hasEnded = ({ state }: TaskNow) => ENDED.has(state);

/** Throws `RpcError` if the task does not exist or belongs to another user or another agent. */
export async function findTask(stores: Stores, owner: Owner, id: string, agent: string): Promise<TaskNow> {
  const [thread, run, ...rest] = id.split(".");
  const isId = rest.length === 0 && Id.safeParse(thread).success && Id.safeParse(run).success;
  const known = isId ? await stores.runs.get(owner, thread ?? "", run ?? "") : undefined;
  const task =
    known?.agent === agent
      ? (await ofThread(stores, owner, known.thread_id)).find(({ first }) => first.id === known.id)
      : undefined;
  if (task) return task;
  throw new RpcError(A2A.notFound, `There is no task \`${id}\`.`);
}

/**
 * Returns the tasks of a thread, newest first. In a thread with more than a thousand runs, returns only the tasks of
 * the newest runs.
 */
async function ofThread({ threads, runs }: Stores, owner: Owner, threadId: string): Promise<TaskNow[]> {
  const all: RunRecord[] = [];
  let cursor: string | undefined;
  do {
    const page = await runs.list(owner, threadId, { limit: 100, ...(cursor ? { cursor } : {}) });
    all.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== undefined && all.length < MAX_RUNS);
  const [newest] = all;
  if (!newest) return [];
  const open = newest.status === "interrupted" ? await openOn(threads, owner, threadId) : [];
  return turnsOf(all.toReversed())
    .map((turn) => taskOf(turn, newest, open))
    .toReversed();
}

/** Returns the tasks of a context, or of the hundred most recently changed threads, newest first. */
export async function tasksOf(
  stores: Stores,
  owner: Owner,
  contextId: string | undefined,
  agent: string,
): Promise<TaskNow[]> {
  const ids =
    contextId === undefined
      ? (await stores.threads.list(owner, { limit: MAX_THREADS })).items.map(({ id }) => id)
      : [contextId];
  const tasks: TaskNow[] = [];
  for (const id of ids) tasks.push(...(await ofThread(stores, owner, id)));
  return tasks
    .filter(({ first }) => first.agent === agent)
    .toSorted((a, b) => b.first.created_at.localeCompare(a.first.created_at));
}

/**
 * Returns the task as clients see it, with its newest `historyLength` messages. Includes all messages if that number is
 * not set.
 */
export async function shownTask(
  stores: Stores,
  owner: Owner,
  task: TaskNow,
  { historyLength, artifacts }: { readonly historyLength: number | undefined; readonly artifacts: boolean },
) {
  const ref = refOf(task.first);
  const isTold = artifacts || historyLength !== 0;
  const all = isTold ? told(ref, await messagesOf(stores, owner, task.runs)) : { history: [], artifacts: [] };
  const history =
    historyLength === undefined ? all.history : historyLength > 0 ? all.history.slice(-historyLength) : [];
  return {
    id: ref.taskId,
    contextId: ref.contextId,
    status: statusNow(task, ref),
    ...(artifacts ? { artifacts: all.artifacts } : {}),
    ...(history.length > 0 ? { history } : {}),
  };
}

/**
 * Returns the messages of a task's runs. Reads them from the runs' events or, if these have expired, selects messages
 * by timestamp.
 */
export async function messagesOf(
  { threads, events }: Stores,
  owner: Owner,
  all: readonly RunRecord[],
): Promise<Message[]> {
  const messages: Message[] = [];
  for (const run of all) {
    const key = keyOf(owner, run);
    const { first, last } = await events.bounds(key);
    if (first > 1 || last === 0) messages.push(...(await byTime(threads, owner, run)));
    else
      for await (const entry of readLogRange(events, key, { after: 0, last }))
        messages.push(...(await messagesIn([entry], owner.tenant)));
  }
  return messages;
}

async function byTime(threads: Stores["threads"], owner: Owner, run: RunRecord): Promise<Message[]> {
  const messages = await threads.messages(owner, run.thread_id);
  const isOf = ({ created_at }: Message) =>
    created_at >= run.created_at && (run.ended_at === undefined || created_at <= run.ended_at);
  return messages.filter(isOf);
}

/** Groups the runs of a thread, oldest first, into turns. */
function turnsOf(all: readonly RunRecord[]): RunRecord[][] {
  const turns: RunRecord[][] = [];
  for (const run of all) {
    const turn =
      run.resumes === undefined ? undefined : turns.find((each) => each.at(-1)?.id === run.resumes);
    if (turn) turn.push(run);
    else turns.push([run]);
  }
  return turns;
}

function taskOf(turn: readonly RunRecord[], newest: RunRecord, open: readonly Interrupt[]): TaskNow {
  const [first = newest] = turn;
  const now = turn.at(-1) ?? first;
  const isNewest = now.id === newest.id;
  return { first, runs: turn, open: isNewest ? open : [], state: stateOf(now, isNewest, open.length > 0) };
}

/** An interrupted run is no longer waiting if the thread has continued without an answer. */
function stateOf({ status, stop_reason }: RunRecord, isNewest: boolean, isAsking: boolean): TaskState {
  if (status === "pending") return "SUBMITTED";
  if (status === "running") return "WORKING";
  if (status === "interrupted" && !isNewest) return "CANCELED";
  return STATE_AT[kindOfEnd({ status, stop_reason }, isAsking)];
}

const STATE_AT = {
  asks: "INPUT_REQUIRED",
  waits: "WORKING",
  finished: "COMPLETED",
  cancelled: "CANCELED",
  limit: "FAILED",
} as const;

function statusNow({ runs, first, state, open }: TaskNow, ref: TaskRef) {
  const now = runs.at(-1) ?? first;
  const at = now.ended_at ?? now.created_at;
  if (state === "INPUT_REQUIRED") return statusOf(state, at, question(ref, open));
  if (state !== "FAILED") return statusOf(state, at);
  return statusOf(state, at, failure(ref, failureOf(now)?.message ?? ""));
}
