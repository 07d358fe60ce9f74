// Responses: each covers a run, and the runs that continue it after a deferred result.

import type { FastifyReply } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import type { RunRecord } from "../../../agent/core/records.ts";
import { getRun, keyOf, settledRun } from "../../../engine/runs/control.ts";
import { endRun } from "../../../engine/runs/start.ts";
import { deleteThreadTree } from "../../../engine/runs/thread-actions.ts";
import { docsPage } from "../../../lib/docs.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../../server/auth/guard.ts";
import { expired } from "../../../server/http/run-stream.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";
import { type Fold, foldedFrames, foldSoFar } from "../../fold.ts";
import { readRun, streamRun } from "../../reply.ts";
import { forget, titleOf } from "../conversations.ts";
import { conversationOf, IGNORED, ignoredFields } from "../given.ts";
import { findAgent } from "../resources/models.ts";
import { sideAnswer, sideRequest } from "../side-requests.ts";
import { inputItem, messageItem, textPart } from "./history.ts";
import { runOfResponse } from "./ids.ts";
import { askedIn, choiceIn, itemsOf, ResponseBody, refuseSystem, refuseUnsupported } from "./input.ts";
import { inputOf, messagesSince, prepareResponse } from "./prepare.ts";
import { conversationRoutes } from "./resources/conversations.ts";
import { ItemList, ListQuery, listOf } from "./resources/item-list.ts";
import { itemRoutes } from "./resources/items.ts";
import { type Echo, type ProjectOptions, project } from "./table.ts";

const Response = z.looseObject({ id: z.string(), object: z.literal("response") });
const Deleted = z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) });
const Events = z.string().describe("Server-Sent Events of a response, each with a `sequence_number`.");
const ResponseParams = z.object({ response_id: z.string().min(1).max(512) });
const RetrieveQuery = z.looseObject({
  stream: z.enum(["true", "false"]).optional(),
  starting_after: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
});

/** The maximum time for a cancelled run to end before its current state is returned, in ms. */
const CANCEL_MS = 5_000;

const tags = ["openai"];

export function responseRoutes(app: App, services: RouteServices): void {
  conversationRoutes(app, services);
  itemRoutes(app, services);
  createRoute(app, services);
  retrieveRoute(app, services);
  endRoutes(app, services);
  inputRoute(app, services);
}

function createRoute(app: App, services: RouteServices): void {
  const chats = { ...services, log: app.log };

  app.post(
    "/responses",
    {
      sse: "manual",
      schema: {
        summary: "Run an agent and read its response: streamed, whole or in the background",
        description: `The Responses API of OpenAI's SDKs. See ${docsPage("reference/wires/openai-responses.md")}.`,
        tags,
        body: ResponseBody,
        response: {
          200: {
            content: { "text/event-stream": { schema: Events }, "application/json": { schema: Response } },
          },
        },
      },
    },
    async (request, reply) => {
      const { body } = request;
      refuseUnsupported(body);
      if (services.refusesSystemMessages) refuseSystemMessages(body);
      if (body.model) findAgent(services.agents, body.model);
      reply.headers(omitUndefined({ [IGNORED]: ignoredFields(body, ResponseBody.shape) }));
      const owner = ownerOf(request);
      const side = sideRequest(request.headers, askedIn(body));
      if (side) {
        const title = await titleOf(chats, owner, conversationOf(request.headers, body.metadata));
        return sideResponse(body, side.job, sideAnswer(side, title));
      }
      const choice = choiceIn(body);
      const { start, isAnonymous, thread_id } = await prepareResponse(chats, request, choice);
      const echo = echoOf(body);
      const options = { echo, ...omitUndefined({ answersAs: choice.answer?.name }) };
      const cancelsOnLeave = !body.background;
      try {
        if (body.stream) {
          const framesOf = (run: RunRecord) => framesFor(services, { owner, from: run }, options);
          await streamRun(services, reply, { owner, start, framesOf, cancelsOnLeave });
          return undefined;
        }
        if (body.background) return reply.send(project(options).response(await start()));
        return reply.send(await whole(services, reply, { owner, start, options }));
      } finally {
        if (isAnonymous) void forget(chats, owner, thread_id, { isLast: choice.answer !== undefined });
      }
    },
  );
}

function retrieveRoute(app: App, services: RouteServices): void {
  const { stores, streams } = services;

  app.get(
    "/responses/:response_id",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Get a response or, with `stream=true`, its events from the first one or after a number",
        description:
          "Returns 404 with the code `events_expired` if events after the number are no longer kept.",
        tags,
        params: ResponseParams,
        querystring: RetrieveQuery,
        response: {
          200: {
            content: { "text/event-stream": { schema: Events }, "application/json": { schema: Response } },
          },
        },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const run = await runNamed(stores, owner, request.params.response_id);
      const { stream, starting_after: after } = request.query;
      if (stream !== "true") return reply.send(await responseNow(stores, { owner, from: run }));
      if (after !== undefined) await assertKept(stores, owner, run);
      await streams.send(
        reply,
        framesFor(services, { owner, from: run }, omitUndefined({ after })),
        "comment",
        "cut",
      );
      return undefined;
    },
  );
}

function endRoutes(app: App, { runs, stores, quotas }: RouteServices): void {
  app.post(
    "/responses/:response_id/cancel",
    {
      schema: {
        summary: "Cancel a response in progress; a finished one is returned unchanged",
        tags,
        params: ResponseParams,
        response: { 200: Response },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const run = await runNamed(stores, owner, request.params.response_id);
      const { see, response } = project({});
      const last = await foldSoFar(stores, readerOf(stores, { owner, from: run }, see));
      if (!ACTIVE.has(response(run).status)) return response(run);
      const ended = await endRun(runs, keyOf(owner, last), "cancel").catch(() => last);
      await settledRun(runs, keyOf(owner, ended), AbortSignal.timeout(CANCEL_MS));
      return responseNow(stores, { owner, from: await getRun(runs, keyOf(owner, run)) });
    },
  );

  app.delete(
    "/responses/:response_id",
    {
      schema: {
        summary: "Delete a response that makes up its entire conversation",
        tags,
        params: ResponseParams,
        response: { 200: Deleted },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { response_id: id } = request.params;
      const { thread_id } = await runNamed(stores, owner, id);
      const { items } = await stores.runs.list(owner, thread_id, { limit: 2 });
      if (items.length > 1)
        throw new AppError(
          "already_exists",
          `Response \`${id}\` is part of a conversation. Delete the conversation \`${thread_id}\`.`,
          { details: { code: "part_of_conversation" } },
        );
      await deleteThreadTree({ threads: stores.threads, quotas }, owner, thread_id);
      return { id, object: "response" as const, deleted: true as const };
    },
  );
}

function inputRoute(app: App, { stores }: RouteServices): void {
  app.get(
    "/responses/:response_id/input_items",
    {
      schema: {
        summary: "List the input items of a response",
        tags,
        params: ResponseParams,
        querystring: ListQuery,
        response: { 200: ItemList },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const run = await runNamed(stores, owner, request.params.response_id);
      const said = await inputOf(stores, owner, run);
      return listOf(said.map(inputItem), request.query);
    },
  );
}

type Stores = RouteServices["stores"];

async function runNamed(stores: Stores, owner: Owner, id: string): Promise<RunRecord> {
  const named = runOfResponse(id);
  const run = named && (await stores.runs.get(owner, named.thread_id, named.run_id));
  if (run) return run;
  throw new AppError("not_found", `There is no response \`${id}\`.`);
}

/** Event numbers are known only if all events are stored. */
async function assertKept(stores: Stores, owner: Owner, run: RunRecord): Promise<void> {
  const { first, last } = await stores.events.bounds(keyOf(owner, run));
  if (first > 1 || (last === 0 && run.ended_at !== undefined)) throw expired();
}

/** The first run of a response, and its owner. */
interface FoldedRun {
  readonly owner: Owner;
  readonly from: RunRecord;
}

const readerOf = (stores: Stores, { owner, from }: FoldedRun, fold: Fold) => ({
  owner,
  from,
  fold,
  unit: "turn" as const,
  messages: () => messagesSince(stores, owner, from),
});

const framesFor = ({ stores }: RouteServices, run: FoldedRun, options: ProjectOptions) =>
  foldedFrames(stores, readerOf(stores, run, project(options).see));

async function responseNow(stores: Stores, run: FoldedRun) {
  const { see, response } = project({});
  await foldSoFar(stores, readerOf(stores, run, see));
  return response(run.from);
}

interface ResponseRequest {
  readonly owner: Owner;
  readonly start: () => Promise<RunRecord>;
  readonly options: ProjectOptions;
}

/** Waits for the run to end. Cancels it if the client disconnects. */
async function whole(
  services: RouteServices,
  reply: FastifyReply,
  { owner, start, options }: ResponseRequest,
) {
  const { stores } = services;
  const { see, response } = project(options);
  const framesOf = (run: RunRecord) => foldedFrames(stores, readerOf(stores, { owner, from: run }, see));
  const run = await readRun(services, reply, { owner, start, framesOf, cancelsOnLeave: true });
  return response(run);
}

const ACTIVE: ReadonlySet<string> = new Set(["queued", "in_progress"]);

const refuseSystemMessages = (body: ResponseBody) =>
  body.instructions
    ? refuseSystem([{ role: "system" }], "instructions")
    : refuseSystem(itemsOf(body), "input");

const echoOf = (body: ResponseBody): Echo => ({
  previous_response_id: body.previous_response_id ?? null,
  instructions: body.instructions ?? null,
  background: body.background ?? false,
  store: body.store ?? true,
  max_output_tokens: body.max_output_tokens ?? null,
  temperature: body.temperature ?? null,
  reasoning: body.reasoning ?? null,
  tools: body.tools ?? [],
});

/** Returns a response to a side request, which no agent answers. */
function sideResponse({ model }: ResponseBody, job: string, text: string) {
  return {
    id: `resp_${job}`,
    object: "response" as const,
    created_at: Math.floor(Date.now() / 1000),
    status: "completed",
    model,
    error: null,
    incomplete_details: null,
    metadata: {},
    usage: null,
    output: [messageItem(`msg_${job}`, "completed", textPart(text))],
  };
}
