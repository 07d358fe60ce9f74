// A2A over JSON-RPC, 1.0 and older: agents for other agents. docs/wires/a2a.md has the lines that connect one.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import type { RunRecord } from "../../agent/core/records.ts";
import { beginTurn } from "../../engine/runs/begin-turn.ts";
import { keyOf, settledRun } from "../../engine/runs/control.ts";
import { endRun } from "../../engine/runs/start.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf, principalOf } from "../../server/auth/guard.ts";
import { requireScope } from "../../server/auth/scopes.ts";
import { OLD_SERVER_CARD, SERVER_CARD } from "../../server/config/wire-names.ts";
import { callerOf } from "../../server/http/caller.ts";
import { charsOf } from "../../server/http/json-parts.ts";
import {
  jsonOf,
  type Lists,
  objectOf,
  type Parts,
  payloadOf,
  writtenOf,
} from "../../server/http/long-answers.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { type Fold, foldedFrames } from "../fold.ts";
import { type RpcId, readParams, readRequest, rpcResultParts, unknownMethod } from "../json-rpc.ts";
import { messageOf, threadIdOf } from "../messages.ts";
import { readRun, streamRun } from "../reply.ts";
import { CURRENT, currentMethod, type Dialect, OLDER } from "./dialect.ts";
import { A2A, RPC, RpcError, sendA2aError } from "./errors.ts";
import {
  answersIn,
  contentOf,
  ListParams,
  noPush,
  refuseUnsupported,
  SendParams,
  TaskParams,
} from "./input.ts";
import { AgentCard, cardOf } from "./resources/card.ts";
import { createTasks, hasEnded, refOf, type TaskNow } from "./resources/tasks.ts";
import { project } from "./table.ts";

const AgentParams = z.object({ agent: z.string().min(1).max(64) });
const Message = z.looseObject({
  jsonrpc: z.string().optional().describe("`2.0`."),
  id: z.unknown().optional().describe("A text or a whole number."),
  method: z.string().optional(),
  params: z.looseObject({ id: z.unknown().optional().describe("Of a task.") }).optional(),
});
const RpcAnswer = z.looseObject({ jsonrpc: z.literal("2.0") });
const Updates = z
  .string()
  .describe("Server-Sent Events: as `data` an answer to the request, with an update of the task.");

const METHODS = [
  ...["SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask"],
];
/** How long a cancelled task may take to end before it is reported as it is. */
const CANCEL_MS = 5_000;
const PAGE = 50;

export function a2aRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, unreadAnswers } = services;
  const { threads } = stores;
  const tasks = createTasks(stores);
  const tags = ["a2a"];
  app.setErrorHandler<Error>(sendA2aError);

  for (const card of [SERVER_CARD, OLD_SERVER_CARD])
    app.get(
      `/:agent${card}`,
      { schema: { summary: "An agent's card", tags, params: AgentParams, response: { 200: AgentCard } } },
      async (request) => cardOf(agentNamed(services, request.params.agent), services, request),
    );

  app.post(
    "/:agent",
    {
      sse: "manual",
      schema: {
        summary: "Send an A2A request",
        description: "One JSON-RPC request of the Agent2Agent protocol, 1.0 or 0.3. See docs/wires/a2a.md.",
        tags,
        params: AgentParams,
        headers: z.looseObject({ "a2a-version": z.string().max(64).optional() }),
        body: Message,
        response: {
          200: {
            content: { "text/event-stream": { schema: Updates }, "application/json": { schema: RpcAnswer } },
          },
        },
      },
    },
    async (request, reply) => {
      const { id, method: called, params: sent } = readRequest(request.body);
      if (id === undefined)
        throw new RpcError(RPC.invalidRequest, "A request needs an `id`; notifications are not taken.");
      const older = currentMethod(called);
      const method = older ?? called;
      const dialect = older === undefined ? CURRENT : OLDER;
      if (older === undefined) checkVersion(request.headers["a2a-version"]);
      const agent = agentNamed(services, request.params.agent).name;
      const call = { id, params: dialect.paramsOf(sent), agent, request, reply, dialect };
      switch (method) {
        case "SendMessage":
          return sendResult(call, await send(call));
        case "SendStreamingMessage":
          return sendStreaming(call);
        case "GetTask":
          return sendResult(call, await getTask(call));
        case "ListTasks":
          return listTasks(call);
        case "CancelTask":
          return sendResult(call, await cancelTask(call));
        case "SubscribeToTask":
          return subscribe(call);
        case "GetExtendedAgentCard":
          throw new RpcError(A2A.unsupported, "There is no extended card: the public one says all.");
        default:
          if (method.endsWith("PushNotificationConfig") || method.endsWith("PushNotificationConfigs"))
            throw noPush();
          throw unknownMethod(method, METHODS);
      }
    },
  );

  interface Call {
    readonly id: RpcId;
    readonly params: unknown;
    readonly agent: string;
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly dialect: Dialect;
  }

  interface Sent {
    /** The task that continues, or undefined for a new one. */
    readonly task: TaskNow | undefined;
    readonly start: (stream?: string) => Promise<RunRecord>;
  }

  /** The message begins a task, or answers one that waits. */
  async function sent({ agent, request }: Call, params: SendParams): Promise<Sent> {
    requireScope(principalOf(request), "run");
    refuseUnsupported(params);
    const { message } = params;
    const caller = { ...callerOf(request), idempotency_key: keyOfMessage(message.messageId) };
    if (message.taskId) {
      const task = await tasks.find(caller.owner, message.taskId, agent);
      const { start } = await beginTurn(runs, caller, {
        thread_id: task.first.thread_id,
        answers(open) {
          checkAnswered(task, message.contextId);
          return answersIn(message, open);
        },
      });
      return { task, start };
    }
    const thread_id = message.contextId ? threadIdOf(message.contextId) : newThreadId();
    const { start } = await beginTurn(runs, caller, {
      ...{ thread_id, agent },
      async says() {
        const isKnown = (await threads.message(caller.owner, thread_id, message.messageId)) !== undefined;
        const id = isKnown ? {} : { id: message.messageId };
        return { input: [messageOf({ ...id, content: contentOf(message) })], place: { as: "new" } };
      },
    });
    return { task: undefined, start };
  }

  async function send(call: Call) {
    const { agent, request, reply } = call;
    const owner = ownerOf(request);
    const params = readParams(SendParams, call.params);
    const { returnImmediately = false, historyLength } = params.configuration ?? {};
    const { task, start } = await sent(call, params);
    const run = returnImmediately
      ? await start()
      : await readRun(services, reply, {
          owner,
          start,
          cancelsOnLeave: false,
          framesOf: (from) => framesOf(owner, from, () => []),
        });
    const now = await tasks.find(owner, refOf(task?.first ?? run).taskId, agent);
    return { task: await tasks.shown(owner, now, { historyLength, artifacts: true }) };
  }

  async function sendStreaming(call: Call) {
    const { id, request, reply, dialect } = call;
    const { resultOf } = dialect;
    const owner = ownerOf(request);
    const { task, start } = await sent(call, readParams(SendParams, call.params));
    await streamRun(services, reply, {
      owner,
      start,
      cancelsOnLeave: false,
      framesOf: (run) => framesOf(owner, run, project({ id, ref: refOf(task?.first ?? run), resultOf })),
    });
    return undefined;
  }

  async function subscribe({ id, params, agent, request, reply, dialect: { resultOf } }: Call) {
    const owner = ownerOf(request);
    const task = await tasks.find(owner, readParams(TaskParams, params).id, agent);
    if (hasEnded(task) || task.state === "INPUT_REQUIRED")
      throw new RpcError(A2A.unsupported, "The task is not at work: nothing follows. Use GetTask.");
    const now = task.runs.at(-1) ?? task.first;
    const before = { ...task, runs: task.runs.slice(0, -1) };
    const begin = await tasks.shown(owner, before, { historyLength: undefined, artifacts: true });
    const frames = framesOf(owner, now, project({ id, ref: refOf(task.first), begin, resultOf }));
    await streams.send(reply, frames, "comment", "cut");
    return undefined;
  }

  async function getTask({ params, agent, request }: Call) {
    const owner = ownerOf(request);
    const { id, historyLength } = readParams(TaskParams, params);
    return tasks.shown(owner, await tasks.find(owner, id, agent), { historyLength, artifacts: true });
  }

  async function cancelTask({ params, agent, request }: Call) {
    requireScope(principalOf(request), "run");
    const owner = ownerOf(request);
    const { id } = readParams(TaskParams, params);
    const task = await tasks.find(owner, id, agent);
    if (hasEnded(task)) throw new RpcError(A2A.notCancelable, "The task has ended.");
    const ended = await endRun(runs, keyOf(owner, task.runs.at(-1) ?? task.first), "cancel");
    await settledRun(runs, keyOf(owner, ended), AbortSignal.timeout(CANCEL_MS));
    return tasks.shown(owner, await tasks.find(owner, id, agent), {
      historyLength: undefined,
      artifacts: true,
    });
  }

  async function listTasks(call: Call) {
    const { params, agent, request } = call;
    const owner = ownerOf(request);
    const query = readParams(ListParams, params);
    const { contextId, status, pageSize = PAGE, pageToken, historyLength = 0, statusTimestampAfter } = query;
    const offset = pageToken ? Number(pageToken) : 0;
    if (!Number.isInteger(offset) || offset < 0)
      throw new RpcError(RPC.invalidParams, "pageToken: this is not the token of a page.");
    const since = statusTimestampAfter === undefined ? 0 : Date.parse(statusTimestampAfter);
    const isWanted = (task: TaskNow) => {
      const { ended_at, created_at } = task.runs.at(-1) ?? task.first;
      const fits = !status || status === "TASK_STATE_UNSPECIFIED" || status === `TASK_STATE_${task.state}`;
      return fits && Date.parse(ended_at ?? created_at) >= since;
    };
    const context = contextId ? threadIdOf(contextId) : undefined;
    const all = (await tasks.list(owner, context, agent)).filter(isWanted);
    const page = all.slice(offset, offset + pageSize);
    const view = { historyLength, artifacts: query.includeArtifacts ?? false };
    const next = offset + page.length;
    const rest = {
      nextPageToken: next < all.length ? String(next) : "",
      pageSize: page.length,
      totalSize: all.length,
    };
    /** Each task is read once the client has taken those before it. */
    async function* lists(): Lists {
      for (const task of page) {
        const texts: string[] = [];
        const value = await tasks.shown(owner, task, view);
        for await (const text of writtenOf(owner.tenant, value)) texts.push(text);
        yield [texts.join("")];
      }
    }
    return sendParts(call, objectOf(owner.tenant, { name: "tasks", lists: lists(), restOf: () => rest }));
  }

  function sendResult(call: Call, made: object): Promise<never> {
    const result = call.dialect.resultOf(made);
    return sendParts(call, writtenOf(ownerOf(call.request).tenant, result), charsOf(result));
  }

  async function sendParts({ id, reply }: Call, result: Parts, kept = 0): Promise<never> {
    return jsonOf(reply, await payloadOf(rpcResultParts(id, result), () => unreadAnswers.open(reply), kept));
  }

  function framesOf(owner: Owner, from: RunRecord, fold: Fold) {
    const messages = () => tasks.messagesOf(owner, [from]);
    return foldedFrames(stores, { owner, from, fold, unit: "turn", messages });
  }
}

/** The card of the agent that handles what names none, where the standard looks for the card of a server. */
export function a2aServerCard(app: App, services: RouteServices): void {
  for (const card of [SERVER_CARD, OLD_SERVER_CARD])
    app.get(
      card,
      { schema: { summary: "The card of the default agent", tags: ["a2a"], response: { 200: AgentCard } } },
      async (request) =>
        cardOf(agentNamed(services, services.agents.find(undefined).name), services, request),
    );
}

function agentNamed({ agents }: Pick<RouteServices, "agents">, name: string) {
  const all = agents.list();
  const agent = all.find((each) => each.name === name);
  if (agent) return agent;
  const names = all.map((each) => `\`${each.name}\``).join(", ");
  throw new AppError("not_found", `There is no agent \`${name}\`. Use one of: ${names}.`);
}

/** Throws `RpcError` for a method of 1.0 from a client that does not say that it speaks it. */
function checkVersion(version: unknown): void {
  if (typeof version === "string" && /^1(\.\d+)*$/.test(version)) return;
  throw new RpcError(
    A2A.version,
    "This method belongs to A2A 1.0: send the header `A2A-Version: 1.0`. Version 0.3 has `message/send`.",
  );
}

/** Throws `RpcError` for a task that waits for no answer. */
function checkAnswered(task: TaskNow, contextId: string | null | undefined): void {
  if (contextId && threadIdOf(contextId) !== task.first.thread_id)
    throw new RpcError(RPC.invalidParams, "message.contextId: the task belongs to another context.");
  if (hasEnded(task))
    throw new RpcError(A2A.unsupported, "The task has ended: send a message to its context.");
  if (task.state !== "INPUT_REQUIRED")
    throw new RpcError(
      A2A.unsupported,
      "The task is at work and asks nothing: wait for it with SubscribeToTask.",
    );
}

const keyOfMessage = (messageId: string) => `a2a:${messageId}`;
