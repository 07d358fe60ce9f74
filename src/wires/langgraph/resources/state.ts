// The states of threads: read them, return to them, and write files into them.

import type { FastifyReply } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { keyOf, newestRun, notFound, settledRun } from "../../../engine/runs/control.ts";
import { endRun, openOn } from "../../../engine/runs/start.ts";
import { boundedMap } from "../../../lib/bounded-schemas.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../../server/auth/guard.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { messageTexts, sendText } from "../answers.ts";
import { writeFiles } from "../files.ts";
import { Checkpoint, MAX_SENT_KEYS } from "../input.ts";
import { checkpointOf, headOf, type Checkpoint as ThreadCheckpoint } from "./checkpoints.ts";
import { checkpointShape, historyOf, type Selection, stateText, type WholeThread } from "./states.ts";
import { ThreadParams } from "./threads.ts";
import { writeMessages } from "./update.ts";

const tags = ["langgraph"];

/** A run that only answers open calls ends within a second or two. */
const ENDING_MS = 10_000;

const Select = z.union([z.string(), z.array(z.string().max(64)).max(32)]).nullish();
const StateQuery = z.looseObject({ select: Select });
const ThreadState = z
  .looseObject({})
  .describe("values, next, tasks, metadata, checkpoint, parent_checkpoint, …");
const CheckpointBody = z.looseObject({ checkpoint: Checkpoint.nullish(), select: Select });
const HistoryBody = z
  .looseObject({
    limit: z.int().min(1).max(1000).default(10),
    before: z.union([z.string().max(256), z.looseObject({})]).nullish(),
    checkpoint: Checkpoint.nullish(),
    select: Select,
  })
  .prefault({});
/** Only `messages` and `files` can be written. */
const Values = boundedMap(z.string(), z.unknown(), 64);
const UpdateBody = z.looseObject({
  values: z.union([Values, z.array(Values).max(16)]).nullish(),
  as_node: z.string().max(128).nullish(),
  checkpoint: Checkpoint.nullish(),
  checkpoint_id: z.string().max(256).nullish(),
});
const Files = boundedMap(z.string(), z.unknown(), MAX_SENT_KEYS);
const Updated = z.looseObject({ checkpoint: z.looseObject({ checkpoint_id: z.string() }) });

const params = ThreadParams;

export function stateRoutes(app: App, services: RouteServices): void {
  readRoutes(app, services);
  historyRoute(app, services);
  writeRoute(app, services);
}

function readRoutes(app: App, services: RouteServices): void {
  app.get(
    "/threads/:thread_id/state",
    {
      schema: {
        summary: "Get the state of a thread",
        tags,
        params,
        querystring: StateQuery,
        response: { 200: ThreadState },
      },
    },
    async (request, reply) => {
      const whole = await wholeThread(services, ownerOf(request), request.params.thread_id);
      const select = selectionOf(request.query.select);
      return sendState(reply, services, { whole, at: headOf(whole.messages), select });
    },
  );

  app.get(
    "/threads/:thread_id/state/:checkpoint_id",
    {
      schema: {
        summary: "Get the state of a thread at one of its checkpoints",
        tags,
        params: params.extend({ checkpoint_id: z.string().min(1).max(256) }),
        querystring: StateQuery,
        response: { 200: ThreadState },
      },
    },
    async (request, reply) => {
      const { thread_id, checkpoint_id } = request.params;
      const whole = await wholeThread(services, ownerOf(request), thread_id);
      const select = selectionOf(request.query.select);
      return sendState(reply, services, { whole, at: placeOf(whole, checkpoint_id), select });
    },
  );

  app.post(
    "/threads/:thread_id/state/checkpoint",
    {
      schema: {
        summary: "Get the state of a thread at the checkpoint in the body",
        tags,
        params,
        body: CheckpointBody,
        response: { 200: ThreadState },
      },
    },
    async (request, reply) => {
      const { checkpoint, select } = request.body;
      const whole = await wholeThread(services, ownerOf(request), request.params.thread_id);
      const id = checkpoint?.checkpoint_id;
      const at = id ? placeOf(whole, id) : headOf(whole.messages);
      return sendState(reply, services, { whole, at, select: selectionOf(select) });
    },
  );
}

function historyRoute(app: App, services: RouteServices): void {
  app.post(
    "/threads/:thread_id/history",
    {
      schema: {
        summary: "List the states of a thread, newest first",
        description:
          "Returns the points that a client can restart from: before and after each user message, and the end.",
        tags,
        params,
        body: HistoryBody,
        response: { 200: z.array(ThreadState) },
      },
    },
    async (request, reply) => {
      const { limit, before, checkpoint, select } = request.body;
      const owner = ownerOf(request);
      const whole = await wholeThread(services, owner, request.params.thread_id);
      // A subagent's states are those of its own thread.
      if (checkpoint?.checkpoint_ns) return [];
      const kept = await messageTexts(reply, whole.messages, services.unreadResponses);
      const places = historyOf(whole, kept.texts, { limit, before: idIn(before) });
      const parts = listText(whole, kept.texts, places, selectionOf(select));
      return sendText(reply, { ...kept, parts }, services.unreadResponses);
    },
  );
}

function writeRoute(app: App, services: RouteServices): void {
  app.post(
    "/threads/:thread_id/state",
    {
      schema: {
        summary: "Write messages and files, or end open interrupts",
        description:
          "`values.messages` are added to the thread, or replace messages with the same id. A message of the type `remove` deletes a message. The server writes `values.files` into the agent's backend. `as_node: __end__` ends open interrupts without an answer.",
        tags,
        params,
        body: UpdateBody,
        response: { 200: Updated },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const whole = await wholeThread(services, owner, request.params.thread_id);
      const { files, messages } = writtenIn(request.body);
      if (messages !== undefined) {
        const { checkpoint, checkpoint_id } = request.body;
        const at = (checkpoint?.checkpoint_id || checkpoint_id) ?? undefined;
        await writeMessages(services, owner, whole, { messages, checkpoint_id: at });
      }
      const { thread } = whole;
      if (files !== undefined)
        await writeFiles(services, { owner, thread_id: thread.id, agent: thread.agent }, checkedFiles(files));
      if (files === undefined && messages === undefined) await endWaiting(services, owner, whole);
      const messagesNow = await services.stores.threads.messages(owner, thread.id);
      const head = checkpointShape(thread, headOf(messagesNow));
      return { checkpoint: head, configurable: head };
    },
  );
}

/** Throws `invalid_request` for other values, and for an update that neither writes values nor ends open interrupts. */
function writtenIn({ values: sent, as_node }: z.infer<typeof UpdateBody>) {
  const values = Object.assign({}, ...[sent ?? {}].flat()) as Record<string, unknown>;
  const { files, messages, ...others } = values;
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new AppError(
      "invalid_request",
      `values: clients cannot write \`${other}\`. Send \`messages\` or \`files\`.`,
    );
  if (files === undefined && messages === undefined && as_node !== "__end__")
    throw new AppError(
      "invalid_request",
      "values: send `messages` or `files`, the only values that clients can write.",
    );
  return { files, messages };
}

function checkedFiles(files: unknown): z.infer<typeof Files> {
  const checked = Files.safeParse(files).data;
  if (checked) return checked;
  throw new AppError(
    "invalid_request",
    `values.files: must be an object of at most ${MAX_SENT_KEYS} paths and their texts.`,
  );
}

/** Cancels the waiting run. Throws `interrupt_closed` if no run is waiting. */
async function endWaiting(
  { stores, runs, streams }: RouteServices,
  owner: Owner,
  { thread, open }: WholeThread,
): Promise<void> {
  const newest = await newestRun(stores.runs, owner, thread.id);
  if (!newest || open.length === 0)
    throw new AppError("interrupt_closed", "This thread has no open interrupt.");
  const ending = await endRun(runs, { owner, thread_id: thread.id, run_id: newest.id }, "cancel");
  // The next request may reach any replica and must see the thread idle.
  const signal = AbortSignal.any([streams.closing, AbortSignal.timeout(ENDING_MS)]);
  await settledRun(runs, keyOf(owner, ending), signal);
}

interface StateView {
  readonly whole: WholeThread;
  readonly at: ThreadCheckpoint;
  readonly select: Selection;
}

async function sendState(
  reply: FastifyReply,
  { unreadResponses }: RouteServices,
  { whole, at, select }: StateView,
): Promise<never> {
  const kept = await messageTexts(reply, whole.messages, unreadResponses);
  return sendText(reply, { ...kept, parts: stateText(whole, kept.texts, { at, select }) }, unreadResponses);
}

/** Throws `not_found`. */
async function wholeThread(
  { stores: { threads } }: RouteServices,
  owner: Owner,
  id: string,
): Promise<WholeThread> {
  const thread = await threads.get(owner, id);
  if (!thread) throw notFound("thread", id);
  const [messages, state, open] = await Promise.all([
    threads.messages(owner, id),
    threads.state(owner, id),
    thread.status === "interrupted" ? openOn(threads, owner, id) : [],
  ]);
  return { thread, messages, state, open };
}

/** Throws `not_found`. */
function placeOf({ messages }: WholeThread, id: string): ThreadCheckpoint {
  const place = checkpointOf(messages, id);
  if (place) return place;
  throw new AppError(
    "not_found",
    `This thread has no checkpoint \`${id}\`. The thread may have been rewritten.`,
  );
}

function* listText(
  whole: WholeThread,
  texts: readonly string[],
  places: readonly ThreadCheckpoint[],
  select: Selection,
) {
  yield "[";
  for (const [index, at] of places.entries()) {
    if (index > 0) yield ",";
    yield* stateText(whole, texts, { at, select });
  }
  yield "]";
}

const selectionOf = (select: z.infer<typeof Select>): Selection =>
  select === null || select === undefined ? undefined : typeof select === "string" ? [select] : select;

const Named = z.looseObject({
  checkpoint_id: z.string().optional(),
  configurable: z.looseObject({ checkpoint_id: z.string().optional() }).optional(),
});

/** Returns a checkpoint's id, given alone or in a configuration. */
function idIn(before: z.infer<typeof HistoryBody>["before"]): string | undefined {
  if (typeof before === "string") return before;
  const named = Named.safeParse(before).data;
  return named?.checkpoint_id ?? named?.configurable?.checkpoint_id;
}
