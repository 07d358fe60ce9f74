// Runs: start, follow, stop and steer.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError, hasCode } from "../../../agent/core/errors.ts";
import { userMessage } from "../../../agent/core/message.ts";
import { isSettled, RunRecord } from "../../../agent/core/records.ts";
import type { RunKey } from "../../../agent/core/stores.ts";
import { admit } from "../../../engine/quotas/holds.ts";
import { getRun, keyOf, settledRun, steerRun } from "../../../engine/runs/control.ts";
import { listRuns, MAX_THREADS } from "../../../engine/runs/find.ts";
import { currentPhase, outputOf } from "../../../engine/runs/follow.ts";
import { SentRequest } from "../../../engine/runs/sent-requests.ts";
import { endRun, startRun } from "../../../engine/runs/start.ts";
import { Trace, TraceSpan, traceOf } from "../../../engine/runs/trace.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { ownerOf } from "../../auth/guard.ts";
import { inSlices, jsonOf, objectOf, pageSender, payloadOf } from "../long-responses.ts";
import { commandOf, refuseSystemMessages } from "../run-command.ts";
import {
  expired,
  finishedJson,
  lastEventId,
  parseThreadCursor,
  replyWithRun,
  resumeAt,
  runFrames,
} from "../run-stream.ts";
import {
  EventsQuery,
  FinishedRun,
  IdempotencyKey,
  PageQuery,
  pageOf,
  RequestParams,
  RunNow,
  RunParams,
  RunStream,
  RunsQuery,
  StartRunBody,
  SteerBody,
  StopBody,
  ThreadParams,
} from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type App, fittingJson } from "../validation.ts";

export function runRoutes(app: App, services: RouteServices): void {
  startRoute(app, services);
  listRoutes(app, services);
  followRoutes(app, services);
  recordRoutes(app, services);
  controlRoutes(app, services);
}

function startRoute(app: App, services: RouteServices): void {
  const json = finishedJson(app, "/threads/:thread_id/runs");
  app.post(
    "/threads/:thread_id/runs",
    {
      sse: "manual",
      schema: {
        summary: "Start a run and follow it",
        description:
          "Creates the thread if it does not exist, and streams the run. With `Accept: application/json`, waits until the run ends. With `background`, returns immediately. A repeated request with the same `Idempotency-Key`, or with `Last-Event-ID`, rejoins the run instead of starting another.",
        tags: ["runs"],
        params: ThreadParams,
        headers: IdempotencyKey,
        body: StartRunBody,
        response: {
          200: {
            content: {
              "text/event-stream": { schema: RunStream },
              "application/json": { schema: FinishedRun },
            },
          },
          202: RunRecord,
          204: z.null(),
        },
      },
    },
    async (request, reply) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      if (services.refusesSystemMessages) refuseSystemMessages(request.body);
      const cursor = lastEventId(request);
      return replyWithRun(services, { owner, ...request.body }, { request, reply, json }, (stream) =>
        cursor
          ? rejoin(services, { owner, thread_id, run_id: parseThreadCursor(cursor).runId }, stream)
          : startRun(services.runs, owner, { ...commandOf(thread_id, request.body, request), stream }),
      );
    },
  );
}

function listRoutes(app: App, { stores, unreadResponses }: RouteServices): void {
  const sendPage = pageSender(unreadResponses, fittingJson(app, RunRecord, { method: "GET", url: "/runs" }));

  app.get(
    "/runs",
    {
      schema: {
        summary: "List the runs of all your threads, newest first",
        description: `Includes runs of subagents. Searches the ${MAX_THREADS} most recently changed threads.`,
        tags: ["runs"],
        querystring: RunsQuery,
        response: { 200: pageOf(RunRecord) },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      return sendPage(reply, await listRuns(stores, owner, omitUndefined(request.query)));
    },
  );

  app.get(
    "/threads/:thread_id/runs",
    {
      schema: {
        summary: "List the runs of a thread, newest first",
        tags: ["runs"],
        params: ThreadParams,
        querystring: PageQuery,
        response: { 200: pageOf(RunRecord) },
      },
    },
    async (request, reply) =>
      sendPage(
        reply,
        await stores.runs.list(ownerOf(request), request.params.thread_id, omitUndefined(request.query)),
      ),
  );
}

/** The current state of a run, and its events. */
function followRoutes(app: App, { runs, stores, streams }: RouteServices): void {
  app.get(
    "/threads/:thread_id/runs/:run_id",
    { schema: { summary: "Get a run", tags: ["runs"], params: RunParams, response: { 200: RunNow } } },
    async (request) => {
      const key = keyIn(request);
      const run = await getRun(runs, key);
      const phase = await currentPhase(stores.events, key, run);
      return { ...run, ...omitUndefined({ phase, output: await outputOf(stores.events, key, run) }) };
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/events",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Follow a run",
        description:
          "Replays the events after `Last-Event-ID` (or `after`), then continues live. Returns 204 if the run has ended and you have read all of its events. Returns 410 if events after the cursor are no longer kept.",
        tags: ["runs"],
        params: RunParams,
        querystring: EventsQuery,
        response: { 200: { content: { "text/event-stream": { schema: RunStream } } }, 204: z.null() },
      },
    },
    async (request, reply) => {
      const key = keyIn(request);
      const run = await getRun(runs, key);
      const cursor = lastEventId(request) ?? request.query.after;
      const after = await resumeAt(stores.events, key.owner, run, cursor);
      if (after === undefined) return reply.code(204).send(null);
      await streams.send(reply, runFrames(stores, key, after), request.query.heartbeat);
      return undefined;
    },
  );
}

/** A run's records: its trace, and the requests that were sent to its model. */
function recordRoutes(app: App, { runs, stores, quotas, unreadResponses }: RouteServices): void {
  const spanJson = fittingJson(app, TraceSpan, {
    method: "GET",
    url: "/threads/:thread_id/runs/:run_id/trace",
  });

  app.get(
    "/threads/:thread_id/runs/:run_id/trace",
    {
      schema: {
        summary: "Get the trace of a run: its model calls, tool calls and subagents as spans",
        description:
          "For a run in progress, returns the spans so far. Returns 410 if the run's events are no longer kept.",
        tags: ["runs"],
        params: RunParams,
        response: { 200: Trace },
      },
    },
    async (request, reply) => {
      const key = keyIn(request);
      await resumeAt(stores.events, key.owner, await getRun(runs, key), FROM_THE_START);
      const { spans, is_whole } = await traceOf(stores.events, key, quotas);
      const { tenant } = key.owner;
      const lists = inSlices(tenant, spans, spanJson);
      const answer = objectOf(tenant, { name: "spans", lists, restOf: () => ({ is_whole }) });
      return jsonOf(reply, await payloadOf(answer, () => unreadResponses.open(reply)));
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/requests/:n",
    {
      schema: {
        summary: "Get the request to the model in one of a run's model calls",
        description:
          "`n` is the number of the model call in the run's trace. Returns 404 `not_recorded` unless `traces.requests` is set in server.yaml.",
        tags: ["runs"],
        params: RequestParams,
        response: { 200: SentRequest },
      },
    },
    async (request) => {
      const { n, ...params } = request.params;
      const key = { owner: ownerOf(request), ...params };
      if (!runs.sentRequests) throw notRecorded();
      await getRun(runs, key);
      const sent = await runs.sentRequests.read(key, n);
      if (sent) return sent;
      throw new AppError("not_found", `Request ${n} of run \`${key.run_id}\` is not stored.`);
    },
  );
}

function controlRoutes(app: App, { runs }: RouteServices): void {
  app.post(
    "/threads/:thread_id/runs/:run_id/cancel",
    {
      schema: {
        summary: "Stop a run: now (`cancel`), or after its current step (`interrupt`)",
        description:
          "Returns 200 with the ended run, or 202 if it has not ended within five seconds. To cancel a run that waits for answers, Skein starts another run that answers its open calls, and returns that run.",
        tags: ["runs"],
        params: RunParams,
        body: StopBody,
        response: { 200: RunRecord, 202: RunRecord },
      },
    },
    async (request, reply) => {
      const key = keyIn(request);
      const stopped = await endRun(runs, key, request.body.mode);
      const run = await settledRun(runs, keyOf(key.owner, stopped), AbortSignal.timeout(5_000));
      return reply.code(isSettled(run.status) ? 200 : 202).send(run);
    },
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/messages",
    {
      schema: {
        summary: "Steer an active run: add a user message for its next model call",
        tags: ["runs"],
        params: RunParams,
        body: SteerBody,
        response: { 202: z.object({ message_id: z.string() }) },
      },
    },
    async (request, reply) => {
      const message = userMessage("input" in request.body ? request.body.input : request.body.content);
      await steerRun(runs, keyIn(request), message);
      return reply.code(202).send({ message_id: message.id });
    },
  );
}

/** A client that repeats a POST identifies the run by the last event that it received. */
async function rejoin(
  { runs, quotas }: RouteServices,
  key: RunKey,
  stream: string | undefined,
): Promise<RunRecord> {
  const run = await getRun(runs, key).catch((error: unknown) => {
    throw hasCode(error, "not_found") ? expired() : error;
  });
  await admit(quotas, key.owner, { stream });
  return run;
}

/** The cursor before the first event. */
const FROM_THE_START = "0";

const notRecorded = () =>
  new AppError(
    "not_recorded",
    "This server does not store the requests to models. The operator can set `traces.requests`.",
    {
      details: { setting: "traces.requests" },
    },
  );

const keyIn = (request: FastifyRequest<{ Params: z.infer<typeof RunParams> }>): RunKey => ({
  owner: ownerOf(request),
  ...request.params,
});
