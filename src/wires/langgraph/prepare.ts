// Prepares the run that a body requests: a new run, or a run that answers or ends open interrupts.

import { AppError, hasCode } from "../../agent/core/errors.ts";
import type { Message, UserMessage } from "../../agent/core/message.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { keyOfMessage } from "../../engine/runs/align.ts";
import { keyOf, newestRun, notFound, settledRun } from "../../engine/runs/control.ts";
import {
  type Caller,
  prepareTurn,
  type TurnInput,
  type TurnRequest,
  type TurnThread,
} from "../../engine/runs/prepare-turn.ts";
import { endRun, openOn } from "../../engine/runs/start.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { mapInTicks } from "../../lib/ticks.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { Interrupt } from "../../protocol/interrupt.ts";
import { cancelIfActive } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import { writeFiles } from "./files.ts";
import {
  checkpointIn,
  clientTools,
  messageIn,
  type RunBody,
  refuseUnsupported,
  roleOf,
  sentMessages,
} from "./input.ts";
import { runMetadata } from "./modes.ts";
import { agentNamed } from "./resources/assistants.ts";
import { answersOf } from "./resume.ts";
import { countingIn, taskOf } from "./task.ts";

/** Starts or finds a run. `stream` is the id of the reserved stream. */
export type Starter = (stream?: string) => Promise<RunRecord>;

/**
 * Checks the body and returns a function that starts its run. Throws `not_found` for an unknown agent, and for an
 * unknown thread unless `if_not_exists` is `create`. Throws `invalid_request` for unsupported options and for answers
 * that match no open interrupt. Throws `interrupt_closed` if no interrupt is open.
 */
export async function prepare(
  services: RouteServices,
  caller: Caller,
  threadId: string,
  body: RunBody,
): Promise<Starter> {
  refuseUnsupported(body);
  const { name: agent } = agentNamed(services.agents, body.assistant_id);
  if (services.refusesSystemMessages && sentMessages(body).some((each) => roleOf(each) === "system"))
    throw new AppError(
      "invalid_request",
      "input.messages: this server accepts no `system` messages from users. Use `human`.",
    );
  const thread = await services.stores.threads.get(caller.owner, threadId);
  if (!thread && body.if_not_exists !== "create") throw notFound("thread", threadId);
  const { resume, goto } = body.command ?? {};
  if (goto === "__end__" && isMissing(resume)) return prepareEnd(services, caller, threadId);
  const turn = {
    thread_id: threadId,
    metadata: runMetadata(body),
    request: { ...omitUndefined({ tools: clientTools(body) }) },
  };
  if (!isMissing(resume)) {
    const answers = (open: readonly Interrupt[]) => answersOf(resume, open);
    return (await prepareTurn(services.runs, caller, { ...turn, answers })).start;
  }
  return prepareInput(services, caller, { ...turn, agent }, body);
}

const isMissing = (resume: unknown) => resume === undefined || resume === null;

/** Ends a waiting run without a model call. */
async function prepareEnd(
  { stores, runs }: RouteServices,
  { owner }: Caller,
  thread_id: string,
): Promise<Starter> {
  const newest = await newestRun(stores.runs, owner, thread_id);
  if (!newest || (await openOn(stores.threads, owner, thread_id)).length === 0)
    throw new AppError("interrupt_closed", "This thread has no open interrupt.");
  return () => endRun(runs, { owner, thread_id, run_id: newest.id }, "cancel");
}

async function prepareInput(
  services: RouteServices,
  caller: Caller,
  turn: TurnRequest & { readonly agent: string },
  body: RunBody,
): Promise<Starter> {
  const { owner } = caller;
  const { thread_id, agent, request } = turn;
  const on_busy = ON_BUSY[body.multitask_strategy ?? "enqueue"];
  const { as, replaces, start } = await prepareTurn(services.runs, caller, {
    ...turn,
    on_busy,
    request: { ...request, ...omitUndefined({ model: modelIn(services, agent, body) }) },
    input: (thread) => turnInputOf(services, owner, { thread_id, thread }, body),
  });
  if (as === "repeat") return start;
  return async (stream) => {
    if (body.input?.files) await writeFiles(services, { owner, thread_id, agent }, body.input.files);
    if (replaces === undefined || on_busy === "reject") return start(stream);
    return start(stream).catch(async (error: unknown) => {
      if (!hasCode(error, "thread_busy")) throw error;
      await endRuns(services, owner, thread_id);
      return start(stream);
    });
  };
}

interface AddressedThread {
  readonly thread_id: string;
  readonly thread: TurnThread;
}

async function turnInputOf(
  { stores }: RouteServices,
  owner: Owner,
  { thread_id, thread }: AddressedThread,
  body: RunBody,
): Promise<TurnInput> {
  const known = await thread.messages();
  const messages = await mapInTicks(owner.tenant, countingIn(known, sentMessages(body)), messageIn);
  const { input, place } = taskOf(known, messages, checkpointIn(body));
  const newest = input.findLast((message) => message.role === "user");
  const isNew = place.as === "new";
  const key = newest && (await keyFor(stores, owner, { thread_id, newest, known, isNew }));
  return { messages: input, place, idempotency_key: key };
}

/**
 * Ends the thread's active and waiting runs, because a rewind would remove their messages. Waits for them to end, for a
 * limited time.
 */
async function endRuns({ runs, stores, streams }: RouteServices, owner: Owner, threadId: string) {
  const { items } = await stores.runs.list(owner, threadId, { limit: 100 });
  // Cancels the newest run first, so no waiting run starts in the meantime.
  const keys = items.filter(({ status }) => !isSettled(status)).map((run) => keyOf(owner, run));
  const signal = AbortSignal.any([streams.closing, AbortSignal.timeout(ENDING_MS)]);
  for (const key of keys) await cancelIfActive(runs, key);
  for (const key of keys) await settledRun(runs, key, signal);
}

/** A cancelled run ends within a second or two. */
const ENDING_MS = 10_000;

const ON_BUSY = {
  enqueue: "enqueue",
  reject: "reject",
  interrupt: "interrupt",
  rollback: "interrupt",
} as const;

interface KeyParts {
  readonly thread_id: string;
  readonly newest: UserMessage;
  readonly known: readonly Message[];
  readonly isNew: boolean;
}

/**
 * Returns the idempotency key with which repeated requests for the same message share one run, even while that run
 * waits for an earlier one.
 */
async function keyFor(
  { runs }: RouteServices["stores"],
  owner: Owner,
  { thread_id, newest, known, isNew }: KeyParts,
): Promise<string> {
  if (!isNew) return keyOfMessage(newest, known);
  const key = `message:${newest.id}`;
  const earlier = await runs.known(owner, thread_id, key);
  // The message of that run has since been removed from the thread, and the client sends it again.
  return earlier && isSettled(earlier.status) ? keyOfMessage(newest, known) : key;
}

/**
 * Returns the model that the client requests, if the agent offers it. Front ends also send model names from other
 * servers.
 */
function modelIn({ agents }: RouteServices, agent: string, { config }: RunBody): string | undefined {
  const model = config?.configurable?.model;
  if (!model) return undefined;
  try {
    agents.checkModel(agents.find(agent), model);
    return model;
  } catch (error) {
    if (hasCode(error, "invalid_request")) return undefined;
    throw error;
  }
}
