// Runs: start, follow, stop, steer.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { hasCode } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import { type Message, systemMessage, userMessage } from "../../core/message.ts";
import { isSettled, RunRecord } from "../../core/records.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { currentPhase } from "../../runs/follow.ts";
import type { StartRun } from "../../runs/manager.ts";
import { Trace, traceOf } from "../../runs/trace.ts";
import { ownerOf } from "../auth/guard.ts";
import { expired, lastEventId, placeOf, replyWithRun, resumeAt, runFrames } from "../run-stream.ts";
import {
  EventsQuery,
  FinishedRun,
  IdempotencyKey,
  PageQuery,
  pageOf,
  RunNow,
  RunParams,
  StartRunBody,
  SteerBody,
  StopBody,
  ThreadParams,
} from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const Stream = z.string().describe("Server-Sent Events: `id`, `event`, and as `data` a StreamEvent.");

export function runRoutes(app: App, { runs, streams, stores }: RouteServices): void {
  app.post(
    "/threads/:thread_id/runs",
    {
      sse: "manual",
      schema: {
        summary: "Start a run, and follow it",
        description:
          "Loads or creates the thread. Streams the run; with `Accept: application/json` waits for its end; with `background` answers at once. A repeat with the same `Idempotency-Key`, or with `Last-Event-ID`, rejoins the run instead of starting another.",
        tags: ["runs"],
        params: ThreadParams,
        headers: IdempotencyKey,
        body: StartRunBody,
        response: {
          200: {
            content: { "text/event-stream": { schema: Stream }, "application/json": { schema: FinishedRun } },
          },
          202: RunRecord,
          204: z.null(),
        },
      },
    },
    async (request, reply) => {
      const { params, body } = request;
      const owner = ownerOf(request);
      const cursor = lastEventId(request);
      const starting = {
        owner,
        background: body.background,
        onDisconnect: body.on_disconnect,
        run: () =>
          cursor
            ? rejoined(owner, params.thread_id, placeOf(cursor).runId)
            : runs.start(owner, startOf(params.thread_id, request)),
      };
      return replyWithRun({ runs, streams }, starting, request, reply);
    },
  );

  app.get(
    "/threads/:thread_id/runs",
    {
      schema: {
        summary: "The runs of a thread, newest first",
        tags: ["runs"],
        params: ThreadParams,
        querystring: PageQuery,
        response: { 200: pageOf(RunRecord) },
      },
    },
    async (request) => runs.list(ownerOf(request), request.params.thread_id, omitUndefined(request.query)),
  );

  app.get(
    "/threads/:thread_id/runs/:run_id",
    { schema: { summary: "A run", tags: ["runs"], params: RunParams, response: { 200: RunNow } } },
    async (request) => {
      const { thread_id, run_id } = request.params;
      const owner = ownerOf(request);
      const run = await runs.get(owner, thread_id, run_id);
      return {
        ...run,
        ...omitUndefined({ phase: await currentPhase(stores.events, { owner, thread_id, run_id }, run) }),
      };
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/events",
    {
      sse: "manual",
      schema: {
        summary: "Follow a run",
        description:
          "Replays what came after `Last-Event-ID` (or `after`), then goes on live. 204 when the run has ended and was read to its end; 410 when events after the cursor are no longer kept.",
        tags: ["runs"],
        params: RunParams,
        querystring: EventsQuery,
        response: { 200: { content: { "text/event-stream": { schema: Stream } } }, 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id, run_id } = request.params;
      const owner = ownerOf(request);
      const run = await runs.get(owner, thread_id, run_id);
      const after = await resumeAt(runs, { owner, run }, lastEventId(request) ?? request.query.after);
      if (after === undefined) return reply.code(204).send(null);
      await streams.send(reply, runFrames(runs, { owner, run, after }), request.query.heartbeat);
      return undefined;
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/trace",
    {
      schema: {
        summary: "What a run did, for how long, within what",
        description: "Of a run that goes on, what it did so far. 410 when its events are no longer kept.",
        tags: ["runs"],
        params: RunParams,
        response: { 200: Trace },
      },
    },
    async (request) => {
      const { thread_id, run_id } = request.params;
      const owner = ownerOf(request);
      const run = await runs.get(owner, thread_id, run_id);
      await resumeAt(runs, { owner, run }, FROM_THE_START);
      return traceOf(stores.events, { owner, thread_id, run_id });
    },
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/cancel",
    {
      schema: {
        summary: "Stop a run: now (`cancel`), or after its current step (`interrupt`)",
        description:
          "200 with the ended run, or 202 when it has not ended within five seconds. A run that waits for answers is cancelled by another one, which answers its open calls and is what comes back.",
        tags: ["runs"],
        params: RunParams,
        body: StopBody,
        response: { 200: RunRecord, 202: RunRecord },
      },
    },
    async (request, reply) => {
      const { thread_id, run_id } = request.params;
      const owner = ownerOf(request);
      const stopped = await runs.end(owner, thread_id, run_id, request.body.mode);
      const run = await runs.settled(owner, stopped, AbortSignal.timeout(5_000));
      return reply.code(isSettled(run.status) ? 200 : 202).send(run);
    },
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/messages",
    {
      schema: {
        summary: "Steer: a user message for the running run, taken in before its next model call",
        tags: ["runs"],
        params: RunParams,
        body: SteerBody,
        response: { 202: z.object({ message_id: z.string() }) },
      },
    },
    async (request, reply) => {
      const { thread_id, run_id } = request.params;
      const message = userMessage("input" in request.body ? request.body.input : request.body.content);
      await runs.steer(ownerOf(request), thread_id, run_id, message);
      return reply.code(202).send({ message_id: message.id });
    },
  );

  /** Clients that retry a POST by themselves say with the last event they got which run they mean. */
  async function rejoined(owner: Owner, threadId: string, runId: string): Promise<RunRecord> {
    return runs.get(owner, threadId, runId).catch((error: unknown) => {
      throw hasCode(error, "not_found") ? expired() : error;
    });
  }
}

/** As a cursor. */
const FROM_THE_START = "0";

function startOf(threadId: string, request: FastifyRequest<{ Body: StartRunBody }>): StartRun {
  const { agent, model, temperature, max_tokens, thinking, tool_choice, metadata, on_busy, tools, replaces } =
    request.body;
  const key = request.headers["idempotency-key"];
  return {
    thread_id: threadId,
    messages: inputOf(request.body),
    settings: omitUndefined({ temperature, max_tokens, thinking, tool_choice }),
    metadata,
    on_busy,
    ...omitUndefined({
      agent,
      model,
      tools,
      replaces,
      idempotency_key: typeof key === "string" ? key : undefined,
    }),
  };
}

function inputOf({ input, messages = [] }: StartRunBody): Message[] {
  if (input !== undefined) return [userMessage(input)];
  return messages.map(({ role, content }) =>
    role === "system" ? systemMessage(content) : userMessage(content),
  );
}
