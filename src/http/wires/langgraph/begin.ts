// Starts what the body of a run asks for: a new run, an answer to what waits, or its end.

import { AppError, hasCode } from "../../../core/errors.ts";
import type { Message, UserMessage } from "../../../core/message.ts";
import { isSettled, type Origin, type RunRecord } from "../../../core/records.ts";
import { mapInTurns } from "../../../lib/async.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { keyOf, newestRun, notFound, settledRun } from "../../../runs/control.ts";
import { endRun, openOn, resumeRun, startRun } from "../../../runs/start.ts";
import { turnStart } from "../../../runs/turn.ts";
import { cancelIfActive } from "../../run-stream.ts";
import type { RouteServices } from "../../services.ts";
import { keyOfMessage } from "../messages.ts";
import { agentNamed } from "./assistants.ts";
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
import { answersOf } from "./resume.ts";
import { countingIn, taskOf } from "./task.ts";

export interface Sender {
  readonly owner: Owner;
  /** The id of the API key. */
  readonly api_key?: string | undefined;
  readonly origin?: Origin | undefined;
  readonly idempotency_key?: string | undefined;
}

/** Starts a run, or finds it. Gets the id of the stream's place. */
export type Begin = (stream?: string) => Promise<RunRecord>;

/**
 * Checks everything and starts nothing yet. Throws `not_found` for an unknown agent, and for an unknown thread unless the
 * body says to create it; `invalid_request` for unsupported options and for answers that fit no open interrupt; `interrupt_closed`.
 */
export async function beginning(
  services: RouteServices,
  sender: Sender,
  threadId: string,
  body: RunBody,
): Promise<Begin> {
  refuseUnsupported(body);
  const { name: agent } = agentNamed(services.agents, body.assistant_id);
  if (services.refusesSystemMessages && sentMessages(body).some((each) => roleOf(each) === "system"))
    throw new AppError(
      "invalid_request",
      "input.messages: this server accepts no `system` messages from users.",
    );
  const thread = await services.stores.threads.get(sender.owner, threadId);
  if (!thread && body.if_not_exists !== "create") throw notFound("thread", threadId);
  const { resume, goto } = body.command ?? {};
  if (resume !== undefined && resume !== null) return resuming(services, sender, threadId, body);
  if (goto === "__end__") return ending(services, sender, threadId);
  return running(services, sender, { id: threadId, agent }, body);
}

/** Answers what waits. */
async function resuming(
  { stores, runs }: RouteServices,
  { owner, api_key, origin, idempotency_key }: Sender,
  thread_id: string,
  body: RunBody,
): Promise<Begin> {
  const open = await openOn(stores.threads, owner, thread_id);
  const answers = answersOf(body.command?.resume, open);
  const newest = await newestRun(stores.runs, owner, thread_id);
  const command = {
    thread_id,
    run_id: newest?.id ?? open[0]?.run_id ?? "",
    answers,
    metadata: runMetadata(body),
    ...omitUndefined({ tools: clientTools(body), api_key, origin, idempotency_key }),
  };
  return (stream) => resumeRun(runs, owner, { ...command, stream });
}

/** Ends what waits, without an answer of the model. */
async function ending({ stores, runs }: RouteServices, { owner }: Sender, thread_id: string): Promise<Begin> {
  const newest = await newestRun(stores.runs, owner, thread_id);
  if (!newest || (await openOn(stores.threads, owner, thread_id)).length === 0)
    throw new AppError("interrupt_closed", "Nothing in this thread waits for an answer.");
  return () => endRun(runs, { owner, thread_id, run_id: newest.id }, "cancel");
}

async function running(
  services: RouteServices,
  { owner, api_key, origin, idempotency_key }: Sender,
  { id: thread_id, agent }: { readonly id: string; readonly agent: string },
  body: RunBody,
): Promise<Begin> {
  const { stores, runs } = services;
  const known = await stores.threads.messages(owner, thread_id);
  const messages = await mapInTurns(owner.tenant, countingIn(known, sentMessages(body)), messageIn);
  const task = taskOf(known, messages, checkpointIn(body));
  const { input, replaces } = task;
  if (task.as === "repeat") {
    const newest = await newestRun(stores.runs, owner, thread_id);
    const run = newest && (await turnStart({ stores }, owner, newest));
    if (run) return async () => run;
  }
  const said = input.findLast((message) => message.role === "user");
  const key =
    idempotency_key ?? (said && (await keyFor(stores, owner, { thread_id, said, known, replaces })));
  const command = {
    thread_id,
    agent,
    metadata: runMetadata(body),
    on_busy: ON_BUSY[body.multitask_strategy ?? "enqueue"],
    request: {
      input: [...input],
      settings: {},
      ...omitUndefined({ tools: clientTools(body), model: modelIn(services, agent, body), api_key, origin }),
    },
    ...omitUndefined({ rewind_to: replaces, idempotency_key: key }),
  };
  return async (stream) => {
    if (body.input?.files) await writeFiles(services, { owner, thread_id, agent }, body.input.files);
    const start = () => startRun(runs, owner, { ...command, stream });
    if (replaces === undefined || command.on_busy === "reject") return start();
    return start().catch(async (error: unknown) => {
      if (!hasCode(error, "thread_busy")) throw error;
      await endRuns(services, owner, thread_id);
      return start();
    });
  };
}

/** Ends what the thread does and is about to do: all of that would be forgotten. Waits for it, but not for long. */
async function endRuns({ runs, stores, streams }: RouteServices, owner: Owner, threadId: string) {
  const { items } = await stores.runs.list(owner, threadId, { limit: 100 });
  // The newest first, so that none that waits starts meanwhile.
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

interface Said {
  readonly thread_id: string;
  readonly said: UserMessage;
  readonly known: readonly Message[];
  readonly replaces: string | undefined;
}

/** Makes a repeated request for the same message one run, also while that run waits for the one before it. */
async function keyFor(
  { runs }: RouteServices["stores"],
  owner: Owner,
  { thread_id, said, known, replaces }: Said,
): Promise<string> {
  if (replaces !== undefined) return keyOfMessage(said, known);
  const key = `message:${said.id}`;
  const earlier = await runs.known(owner, thread_id, key);
  // Its message has been dropped from the thread since, and is sent again.
  return earlier && isSettled(earlier.status) ? keyOfMessage(said, known) : key;
}

/** The model that the client asks for, if the agent offers it: front ends send names that they know from elsewhere. */
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
