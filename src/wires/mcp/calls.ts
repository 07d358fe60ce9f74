// The tools of the MCP wire.

import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError, type ErrorCode } from "../../agent/core/errors.ts";
import { userMessage } from "../../agent/core/message.ts";
import { newThreadId } from "../../agent/core/new-ids.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import type { Stores } from "../../agent/core/stores.ts";
import { keyOf, newestRun, notFound, settledRun } from "../../engine/runs/control.ts";
import { type Caller, prepareTurn } from "../../engine/runs/prepare-turn.ts";
import { endRun, openOn } from "../../engine/runs/start.ts";
import { turnNow } from "../../engine/runs/turn.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { failureOf } from "../../protocol/end.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Answer, Interrupt } from "../../protocol/interrupt.ts";
import { ownerOf, principalOf } from "../../server/auth/guard.ts";
import { requireScope } from "../../server/auth/scopes.ts";
import { callerOf } from "../../server/http/caller.ts";
import { cancelTurnAt } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { Frame, Frames, LongFrame } from "../../server/http/sse.ts";
import { foldedFrames } from "../fold.ts";
import { RPC, RpcError, RpcId, readParams, rpcResult } from "../json-rpc.ts";
import { threadIdOf } from "../messages.ts";
import { readRun, streamRun } from "../reply.ts";
import { answerIn, isUnderWay, questionOf } from "./elicitation.ts";
import { AnswerQuestion, OneThread, RunAgent, TOOL_NAMES, type ToolName } from "./input.ts";
import { type ClientOfCall, clientOf, cursorOf } from "./protocol.ts";
import { outcomeOf, type ProjectOptions, project, toolError, toolResult } from "./table.ts";

const CallParams = z.looseObject({
  name: z.string().max(256),
  arguments: z.record(z.string(), z.unknown()).nullish(),
  _meta: z.looseObject({ progressToken: RpcId.optional() }).optional(),
  // The user's answers to an earlier result of this call, and the state in that result.
  inputResponses: z.record(z.string(), z.unknown()).optional(),
  requestState: z.string().max(128).optional(),
});
type CallParams = z.infer<typeof CallParams>;

/** The maximum time for a cancelled run to end before its current state is returned, in ms. */
const CANCEL_MS = 5_000;
/** The maximum number of a user's conversations to search for a call to cancel, most recently changed first. */
const MAX_THREADS = 100;

/** A request and its reply. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Returns the idempotency key of a call, which is used to find its run again. */
const keyOfCall = (session: string, id: RpcId) => `mcp:${session}:${JSON.stringify(id)}`;

/** Responds to a tool call, with a stream if an agent is working. Faults in a call are returned to the client's model. */
export async function call(
  services: RouteServices,
  id: RpcId,
  params: unknown,
  { client, request, reply }: Exchange & { readonly client: ClientOfCall },
) {
  const { name, read } = namedCall(params);
  const answered = (result: object) =>
    reply.send(rpcResult(id, client.namesType ? { resultType: "complete", ...result } : result));
  try {
    if (name === "run_agent" || name === "answer") {
      const start = await prepare(services, name, read, { id, client, request });
      return await streamed(services, start, {
        id,
        progressToken: read._meta?.progressToken,
        client,
        request,
        reply,
      });
    }
    return answered(toolResult(await atOnce(services, name, read.arguments, request)));
  } catch (error) {
    if (reply.raw.headersSent || !isForTheModel(error)) throw error;
    return answered(toolError(error.message));
  }
}

/**
 * Returns the result of a call in one piece, once its agent has ended or asks a question. Used for batches, whose
 * results are sent together.
 */
export async function whole(
  services: RouteServices,
  id: RpcId,
  params: unknown,
  { request, reply }: Exchange,
): Promise<object> {
  const { name, read } = namedCall(params);
  const client = IN_A_BATCH;
  try {
    if (name !== "run_agent" && name !== "answer")
      return rpcResult(id, toolResult(await atOnce(services, name, read.arguments, request)));
    const start = await prepare(services, name, read, { id, client, request });
    const projection = projected({ id, progressToken: undefined, ...client });
    const owner = ownerOf(request);
    let last: Frame | LongFrame | undefined;
    const framesOfRun = (from: RunRecord): Frames =>
      async function* (signal) {
        for await (const batch of framesOf(services, owner, from, projection)(signal)) {
          last = batch.at(-1) ?? last;
          yield batch;
        }
      };
    await readRun(services, reply, { owner, start, framesOf: framesOfRun, cancelsOnLeave: true });
    return JSON.parse(String(last?.data)) as object;
  } catch (error) {
    if (!isForTheModel(error)) throw error;
    return rpcResult(id, toolError(error.message));
  }
}

const IN_A_BATCH: ClientOfCall = {
  ...{ session: undefined, asking: "never", comesBack: false, namesType: false },
  shows: { forms: false, addresses: false },
};

type Start = (stream?: string) => Promise<RunRecord>;

async function prepare(
  services: RouteServices,
  name: "run_agent" | "answer",
  params: CallParams,
  { id, client, request }: { id: RpcId; client: ClientOfCall; request: FastifyRequest },
): Promise<Start> {
  requireScope(principalOf(request), "run");
  const { session } = client;
  const sent = callerOf(request);
  const key = sent.idempotency_key ?? (session && keyOfCall(session, id));
  const caller = { ...sent, ...omitUndefined({ idempotency_key: key }) };
  const { requestState, inputResponses = {} } = params;
  if (requestState !== undefined)
    return prepareAnswers(services, caller, requestState, (open) =>
      open.flatMap((each) => {
        const filled = inputResponses[each.id];
        return filled === undefined ? [] : [answerIn(filled, each)];
      }),
    );
  if (name === "answer") {
    const { thread_id, ...answer } = readParams(AnswerQuestion, params.arguments);
    return prepareAnswers(services, caller, thread_id, (open) => [answerTo(open, answer)]);
  }
  const { agent, message, thread_id } = readParams(RunAgent, params.arguments);
  const { start } = await prepareTurn(services.runs, caller, {
    // A repeated request gets the same thread id.
    thread_id: thread_id ?? (session ? threadIdOf(keyOfCall(session, id)) : newThreadId()),
    agent: services.agents.find(agent).name,
    input: () => ({ messages: [userMessage(message)], place: { as: "new" } }),
  });
  return start;
}

/** Throws `not_found` or `interrupt_closed`. */
async function prepareAnswers(
  { runs, stores: { threads } }: RouteServices,
  caller: Caller,
  thread_id: string,
  answersTo: (open: readonly Interrupt[]) => Answer[],
): Promise<Start> {
  if (!(await threads.get(caller.owner, thread_id))) throw notFound("thread", thread_id);
  const answers = (open: readonly Interrupt[]) => {
    if (open.length > 0) return answersTo(open);
    throw new AppError("interrupt_closed", `Thread \`${thread_id}\` has no open interrupt.`);
  };
  return (await prepareTurn(runs, caller, { thread_id, answers, asksAgain: true })).start;
}

interface StreamedCall extends Exchange {
  readonly id: RpcId;
  readonly progressToken: RpcId | undefined;
  readonly client: ClientOfCall;
}

async function streamed(
  services: RouteServices,
  start: Start,
  { id, progressToken, client, request, reply }: StreamedCall,
) {
  const owner = ownerOf(request);
  const { session, ...about } = client;
  const projection = projected({ id, progressToken, ...about });
  await streamRun(services, reply, {
    owner,
    start,
    framesOf: (from) => framesOf(services, owner, from, projection),
    cancelsOnLeave: session === undefined,
    ...omitUndefined({ heartbeat: projection.beat }),
  });
  return undefined;
}

export const projected = ({
  comesBack,
  ...options
}: Omit<ProjectOptions, "cursorOf"> & { readonly comesBack: boolean }) =>
  project({
    ...options,
    cursorOf: comesBack
      ? ({ id: run_id, thread_id }) =>
          cursorOf({ thread_id, run_id, id: options.id, progressToken: options.progressToken })
      : undefined,
  });

export function framesOf(
  { stores }: RouteServices,
  owner: Owner,
  from: RunRecord,
  { fold, end }: ReturnType<typeof project>,
) {
  const messages = async () =>
    [await stores.threads.message(owner, from.thread_id)].filter((last) => last !== undefined);
  return foldedFrames(stores, { owner, from, fold, unit: end, messages });
}

async function atOnce(
  services: RouteServices,
  name: Exclude<ToolName, "run_agent" | "answer">,
  args: unknown,
  request: FastifyRequest,
): Promise<object> {
  const owner = ownerOf(request);
  if (name === "list_agents")
    return {
      agents: services.agents
        .list()
        .map((agent) => omitUndefined({ name: agent.name, description: agent.description })),
    };
  const { thread_id } = readParams(OneThread, args);
  if (name === "get_run")
    return told(services.stores.threads, owner, await newestOf(services.stores, owner, thread_id));
  requireScope(principalOf(request), "run");
  const ended = await endRun(
    services.runs,
    keyOf(owner, await newestOf(services.stores, owner, thread_id)),
    "cancel",
  );
  return told(
    services.stores.threads,
    owner,
    await settledRun(services.runs, keyOf(owner, ended), AbortSignal.timeout(CANCEL_MS)),
  );
}

async function told(threads: Stores["threads"], owner: Owner, run: RunRecord) {
  const [messages, open] = await Promise.all([
    threads.messages(owner, run.thread_id),
    openOn(threads, owner, run.thread_id),
  ]);
  const said = messages.findLast(({ role, content }) => role === "assistant" && content !== "");
  const text = said?.role === "assistant" ? said.content : "";
  return outcomeOf(run, {
    status: run.status,
    text,
    open: isSettled(run.status) ? open : [],
    ...omitUndefined({ error: failureOf(run) }),
  });
}

/** Throws `not_found`. */
async function newestOf({ runs }: Stores, owner: Owner, thread_id: string): Promise<RunRecord> {
  const newest = await newestRun(runs, owner, thread_id);
  if (!newest) throw notFound("thread", thread_id);
  return newest;
}

/** Accepts a form that a client's user has filled in for a call in progress. Ignores closed questions. */
export async function takeForm(
  { runs, stores: { threads } }: RouteServices,
  { id, result }: { readonly id?: unknown; readonly result?: unknown },
  request: FastifyRequest,
): Promise<void> {
  const question = questionOf(id);
  if (!question) return;
  const { thread_id, interrupt_id } = question;
  const caller = callerOf(request);
  const interrupt = (await openOn(threads, caller.owner, thread_id)).find(({ id }) => id === interrupt_id);
  if (!interrupt || isUnderWay(result, interrupt, clientOf(request, undefined).shows)) return;
  const { start } = await prepareTurn(runs, caller, {
    thread_id,
    answers: () => [answerIn(result, interrupt)],
  });
  await start();
}

/** Cancels the run that a call in the session started, even while it waits for an answer. */
export async function cancel(
  { runs, stores }: RouteServices,
  owner: Owner,
  session: string,
  id: RpcId,
): Promise<void> {
  for (const status of ["busy", "interrupted"] as const) {
    const { items } = await stores.threads.list(owner, { limit: MAX_THREADS, status });
    for (const thread of items) {
      const first = await stores.runs.known(owner, thread.id, keyOfCall(session, id));
      if (!first) continue;
      const run = await turnNow({ stores }, owner, first);
      await cancelTurnAt(runs, keyOf(owner, run));
      return;
    }
  }
}

/** The errors that a client's model can correct. Other refusals are errors of the protocol. */
const FOR_THE_MODEL: ReadonlySet<ErrorCode> = new Set([
  "invalid_request",
  "not_found",
  "thread_busy",
  "queue_full",
  "limit_exceeded",
  "run_not_active",
  "interrupt_closed",
]);

const isForTheModel = (error: unknown): error is AppError =>
  error instanceof AppError && FOR_THE_MODEL.has(error.code);

/** Throws `RpcError`. */
function namedCall(params: unknown): { readonly name: ToolName; readonly read: CallParams } {
  const read = readParams(CallParams, params);
  const name = TOOL_NAMES.find((each) => each === read.name);
  // Models send `null` for omitted parameters, and no tool here accepts it.
  const given = Object.entries(read.arguments ?? {}).filter(([, value]) => value !== null);
  if (name) return { name, read: { ...read, arguments: Object.fromEntries(given) } };
  throw new RpcError(RPC.invalidParams, `There is no tool \`${read.name}\`.`);
}

function answerTo(
  open: readonly Interrupt[],
  { id, decision, message }: Omit<z.infer<typeof AnswerQuestion>, "thread_id">,
): Answer {
  const ids = open.map((each) => `\`${each.id}\``).join(", ");
  if (id === undefined && open.length > 1)
    throw new AppError("invalid_request", `Several interrupts are open. Send the \`id\` of one: ${ids}.`);
  const interrupt = id === undefined ? open[0] : open.find((each) => each.id === id);
  if (!interrupt)
    throw new AppError("interrupt_closed", `There is no open interrupt \`${id}\`. Open interrupts: ${ids}.`);
  return { id: interrupt.id, decision, ...omitUndefined({ message }) };
}
