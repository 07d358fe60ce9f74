// The methods of A2A.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { keyOf, settledRun } from "../../engine/runs/control.ts";
import { prepareTurn } from "../../engine/runs/prepare-turn.ts";
import { endRun } from "../../engine/runs/start.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf, principalOf } from "../../server/auth/guard.ts";
import { requireScope } from "../../server/auth/scopes.ts";
import { callerOf } from "../../server/http/caller.ts";
import { charsOf } from "../../server/http/json-parts.ts";
import {
  jsonOf,
  type Lists,
  objectOf,
  type Parts,
  payloadOf,
  writtenOf,
} from "../../server/http/long-responses.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { type Fold, foldedFrames } from "../fold.ts";
import { type RpcId, readParams, rpcResultParts, unknownMethod } from "../json-rpc.ts";
import { messageOf, threadIdOf } from "../messages.ts";
import { readRun, streamRun } from "../reply.ts";
import type { ProtocolDialect } from "./dialect.ts";
import { A2A, RPC, RpcError } from "./errors.ts";
import {
  contentOf,
  ListParams,
  noPush,
  refuseUnsupported,
  responsesIn,
  SendParams,
  TaskParams,
} from "./input.ts";
import {
  findTask,
  hasEnded,
  messagesOf,
  refOf,
  shownTask,
  type TaskNow,
  tasksOf,
} from "./resources/tasks.ts";
import { project } from "./table.ts";

const METHODS = [
  ...["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"],
];
/** The maximum time for a cancelled task to end before its current state is reported, in ms. */
const CANCEL_MS = 5_000;
const PAGE = 50;

export interface MethodServices {
  readonly services: RouteServices;
}

export interface Call {
  readonly id: RpcId;
  readonly params: unknown;
  readonly agent: string;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly dialect: ProtocolDialect;
}

/** `method` is the 1.0 name. */
export async function answer(wire: MethodServices, method: string, call: Call): Promise<undefined> {
  switch (method) {
    case "SendMessage":
      return sendResult(wire, call, await send(wire, call));
    case "SendStreamingMessage":
      return sendStreaming(wire, call);
    case "GetTask":
      return sendResult(wire, call, await getTask(wire, call));
    case "ListTasks":
      return listTasks(wire, call);
    case "CancelTask":
      return sendResult(wire, call, await cancelTask(wire, call));
    case "SubscribeToTask":
      return subscribe(wire, call);
    case "GetExtendedAgentCard":
      throw new RpcError(A2A.unsupported, "There is no extended card. The public card is complete.");
    default:
      if (method.endsWith("PushNotificationConfig") || method.endsWith("PushNotificationConfigs"))
        throw noPush();
      throw unknownMethod(method, METHODS);
  }
}

/** The first run to fold, and its owner. */
interface FoldedRun {
  readonly owner: Owner;
  readonly from: RunRecord;
}

interface PreparedTask {
  /** The task to continue, or undefined for a new one. */
  readonly task: TaskNow | undefined;
  readonly start: (stream?: string) => Promise<RunRecord>;
}

/** Prepares a new task for the message, or the answer to a waiting task. */
async function prepare(
  { services: { runs, stores } }: MethodServices,
  { agent, request }: Call,
  params: SendParams,
): Promise<PreparedTask> {
  requireScope(principalOf(request), "run");
  refuseUnsupported(params);
  const { message } = params;
  const caller = { ...callerOf(request), idempotency_key: keyOfMessage(message.messageId) };
  if (message.taskId) {
    const task = await findTask(stores, caller.owner, message.taskId, agent);
    const { start } = await prepareTurn(runs, caller, {
      thread_id: task.first.thread_id,
      answers(open) {
        checkAnswered(task, message.contextId);
        return responsesIn(message, open);
      },
    });
    return { task, start };
  }
  const thread_id = message.contextId ? threadIdOf(message.contextId) : newThreadId();
  const { start } = await prepareTurn(runs, caller, {
    ...{ thread_id, agent },
    async input() {
      const isKnown =
        (await stores.threads.message(caller.owner, thread_id, message.messageId)) !== undefined;
      const id = isKnown ? {} : { id: message.messageId };
      return { messages: [messageOf({ ...id, content: contentOf(message) })], place: { as: "new" } };
    },
  });
  return { task: undefined, start };
}

async function send(wire: MethodServices, call: Call) {
  const { services } = wire;
  const { agent, request, reply } = call;
  const owner = ownerOf(request);
  const params = readParams(SendParams, call.params);
  const { returnImmediately = false, historyLength } = params.configuration ?? {};
  const { task, start } = await prepare(wire, call, params);
  const run = returnImmediately
    ? await start()
    : await readRun(services, reply, {
        owner,
        start,
        cancelsOnLeave: false,
        framesOf: (from) => framesOf(wire, { owner, from }, () => []),
      });
  const now = await findTask(services.stores, owner, refOf(task?.first ?? run).taskId, agent);
  return { task: await shownTask(services.stores, owner, now, { historyLength, artifacts: true }) };
}

async function sendStreaming(wire: MethodServices, call: Call) {
  const { id, request, reply, dialect } = call;
  const { resultOf } = dialect;
  const owner = ownerOf(request);
  const { task, start } = await prepare(wire, call, readParams(SendParams, call.params));
  await streamRun(wire.services, reply, {
    owner,
    start,
    cancelsOnLeave: false,
    framesOf: (from) =>
      framesOf(wire, { owner, from }, project({ id, ref: refOf(task?.first ?? from), resultOf })),
  });
  return undefined;
}

async function subscribe(
  wire: MethodServices,
  { id, params, agent, request, reply, dialect: { resultOf } }: Call,
) {
  const { services } = wire;
  const owner = ownerOf(request);
  const task = await findTask(services.stores, owner, readParams(TaskParams, params).id, agent);
  if (hasEnded(task) || task.state === "INPUT_REQUIRED")
    throw new RpcError(A2A.unsupported, "The task is not active, so it has no further updates. Use GetTask.");
  const now = task.runs.at(-1) ?? task.first;
  const before = { ...task, runs: task.runs.slice(0, -1) };
  const begin = await shownTask(services.stores, owner, before, {
    historyLength: undefined,
    artifacts: true,
  });
  const fold = project({ id, ref: refOf(task.first), begin, resultOf });
  const frames = framesOf(wire, { owner, from: now }, fold);
  await services.streams.send(reply, frames, "comment", "cut");
  return undefined;
}

async function getTask({ services: { stores } }: MethodServices, { params, agent, request }: Call) {
  const owner = ownerOf(request);
  const { id, historyLength } = readParams(TaskParams, params);
  return shownTask(stores, owner, await findTask(stores, owner, id, agent), {
    historyLength,
    artifacts: true,
  });
}

async function cancelTask({ services: { runs, stores } }: MethodServices, { params, agent, request }: Call) {
  requireScope(principalOf(request), "run");
  const owner = ownerOf(request);
  const { id } = readParams(TaskParams, params);
  const task = await findTask(stores, owner, id, agent);
  if (hasEnded(task)) throw new RpcError(A2A.notCancelable, "The task has already ended.");
  const ended = await endRun(runs, keyOf(owner, task.runs.at(-1) ?? task.first), "cancel");
  await settledRun(runs, keyOf(owner, ended), AbortSignal.timeout(CANCEL_MS));
  return shownTask(stores, owner, await findTask(stores, owner, id, agent), {
    historyLength: undefined,
    artifacts: true,
  });
}

async function listTasks(wire: MethodServices, call: Call) {
  const { params, agent, request } = call;
  const { tenant } = ownerOf(request);
  const query = readParams(ListParams, params);
  const { contextId, pageSize = PAGE, historyLength = 0 } = query;
  const offset = offsetOf(query.pageToken);
  const context = contextId ? threadIdOf(contextId) : undefined;
  const all = (await tasksOf(wire.services.stores, ownerOf(request), context, agent)).filter(filterOf(query));
  const page = all.slice(offset, offset + pageSize);
  const next = offset + page.length;
  const rest = {
    nextPageToken: next < all.length ? String(next) : "",
    pageSize: page.length,
    totalSize: all.length,
  };
  const view = { historyLength, artifacts: query.includeArtifacts ?? false };
  const lists = textsOf(page, ownerOf(request), (task) =>
    shownTask(wire.services.stores, ownerOf(request), task, view),
  );
  return sendParts(wire, call, { parts: objectOf(tenant, { name: "tasks", lists, restOf: () => rest }) });
}

/** Throws `RpcError` for an invalid token. */
function offsetOf(pageToken: string | null | undefined): number {
  const offset = pageToken ? Number(pageToken) : 0;
  if (Number.isInteger(offset) && offset >= 0) return offset;
  throw new RpcError(RPC.invalidParams, "pageToken: must be the `nextPageToken` of an earlier response.");
}

function filterOf({ status, statusTimestampAfter }: z.infer<typeof ListParams>): (task: TaskNow) => boolean {
  const since = statusTimestampAfter === undefined ? 0 : Date.parse(statusTimestampAfter);
  return (task) => {
    const { ended_at, created_at } = task.runs.at(-1) ?? task.first;
    const fits = !status || status === "TASK_STATE_UNSPECIFIED" || status === `TASK_STATE_${task.state}`;
    return fits && Date.parse(ended_at ?? created_at) >= since;
  };
}

/** Loads each task once the client has read the previous one. */
async function* textsOf(
  page: readonly TaskNow[],
  { tenant }: Owner,
  read: (task: TaskNow) => Promise<object>,
): Lists {
  for (const task of page) {
    const texts: string[] = [];
    for await (const text of writtenOf(tenant, await read(task))) texts.push(text);
    yield [texts.join("")];
  }
}

function sendResult(wire: MethodServices, call: Call, made: object): Promise<never> {
  const result = call.dialect.resultOf(made);
  const parts = writtenOf(ownerOf(call.request).tenant, result);
  return sendParts(wire, call, { parts, kept: charsOf(result) });
}

interface Result {
  readonly parts: Parts;
  /** The number of characters of the result that are already in memory. */
  readonly kept?: number;
}

async function sendParts(
  { services }: MethodServices,
  { id, reply }: Call,
  { parts, kept = 0 }: Result,
): Promise<never> {
  const open = () => services.unreadResponses.open(reply);
  return jsonOf(reply, await payloadOf(rpcResultParts(id, parts), open, kept));
}

function framesOf({ services: { stores } }: MethodServices, { owner, from }: FoldedRun, fold: Fold) {
  const messages = () => messagesOf(stores, owner, [from]);
  return foldedFrames(stores, { owner, from, fold, unit: "turn", messages });
}

/** Throws `RpcError` if the task is not waiting for an answer. */
function checkAnswered(task: TaskNow, contextId: string | null | undefined): void {
  if (contextId && threadIdOf(contextId) !== task.first.thread_id)
    throw new RpcError(RPC.invalidParams, "message.contextId: the task belongs to another context.");
  if (hasEnded(task))
    throw new RpcError(
      A2A.unsupported,
      "The task has already ended. Send a message to its context without `taskId`.",
    );
  if (task.state !== "INPUT_REQUIRED")
    throw new RpcError(
      A2A.unsupported,
      "The task is active and has no open question. Follow it with SubscribeToTask.",
    );
}

const keyOfMessage = (messageId: string) => `a2a:${messageId}`;
