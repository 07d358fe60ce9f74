// Runs that are started without a thread. Each gets its own thread, which is kept or deleted after the run.

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { RunRecord } from "../../../agent/core/records.ts";
import { startRun } from "../../../engine/runs/start.ts";
import { type OwnThread, ownThread } from "../../../engine/temporary-threads/own-thread.ts";
import { ErrorShape } from "../../../protocol/event.ts";
import { ownerOf } from "../../auth/guard.ts";
import { pageSender } from "../long-responses.ts";
import { commandOf, refuseSystemMessages } from "../run-command.ts";
import { finishedJson, idempotencyKey, lastEventId, replyWithRun } from "../run-stream.ts";
import { FinishedRun, IdempotencyKey, NewThreadRunBody, RunBatchBody, RunStream } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type App, fittingJson } from "../validation.ts";

export function newThreadRunRoutes(app: App, services: RouteServices): void {
  startRoute(app, services);
  batchRoute(app, services);
}

function startRoute(app: App, services: RouteServices): void {
  const json = finishedJson(app, "/runs");
  app.post(
    "/runs",
    {
      sse: "manual",
      schema: {
        summary: "Start a run on a new thread and follow it",
        description:
          "Streams the run, waits for its end or returns immediately, as `POST /threads/{thread_id}/runs` does. The run contains the id of its thread. If you repeat the request with the same `Idempotency-Key`, you get the same run.",
        tags: ["runs"],
        headers: IdempotencyKey,
        body: NewThreadRunBody,
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
      const { body } = request;
      const owner = ownerOf(request);
      const key = idempotencyKey(request);
      if (services.refusesSystemMessages) refuseSystemMessages(body);
      if (lastEventId(request) !== undefined && key === undefined) throw namesNoRun();
      const own = ownThread(services.temporaryThreads, owner, { key, isKept: body.keep_thread });
      const asked = { owner, ...body, onRead: own.wasRead };
      return replyWithRun(services, asked, { request, reply, json }, (stream) =>
        own.begin(() =>
          startRun(services.runs, owner, { ...commandOf(own.thread_id, body, request), stream }),
        ),
      );
    },
  );
}

const BatchItem = z
  .object({ run: RunRecord.optional(), error: ErrorShape.optional() })
  .describe("`run`, or `error` if this run was refused.");
type BatchItem = z.infer<typeof BatchItem>;

function batchRoute(app: App, services: RouteServices): void {
  const { temporaryThreads, runs, unreadResponses } = services;
  const route = { method: "POST", url: "/runs/batch" };
  const sendPage = pageSender(unreadResponses, fittingJson(app, BatchItem, route));

  app.post(
    "/runs/batch",
    {
      schema: {
        summary: "Start up to 100 runs, each on a new thread, in the background",
        description:
          "Returns results in the order of `runs`. A refused run does not prevent the others from starting. Each run counts toward your quotas. A repeated request with the same `Idempotency-Key` returns the same runs.",
        tags: ["runs"],
        headers: IdempotencyKey,
        body: RunBatchBody,
        response: { 200: z.object({ items: z.array(BatchItem) }) },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const key = idempotencyKey(request);
      const items: BatchItem[] = [];
      // Starts the runs one after the other, so a quota that has room for only some of them admits the first ones.
      for (const [index, body] of request.body.runs.entries()) {
        const nth = key === undefined ? undefined : `batch ${index} ${key}`;
        const own = ownThread(temporaryThreads, owner, { key: nth, isKept: body.keep_thread });
        items.push(await answered(request, own, body));
      }
      return sendPage(reply, { items });
    },
  );

  async function answered(
    request: FastifyRequest,
    own: OwnThread,
    body: z.infer<typeof RunBatchBody>["runs"][number],
  ): Promise<BatchItem> {
    try {
      if (services.refusesSystemMessages) refuseSystemMessages(body);
      const command = commandOf(own.thread_id, body, request);
      return { run: await own.begin(() => startRun(runs, ownerOf(request), command)) };
    } catch (thrown) {
      const error = AppError.from(thrown);
      if (error.code === "internal") request.log.error({ err: thrown }, "a run of a batch failed to start");
      return { error: error.toInfo() };
    }
  }
}

const namesNoRun = () =>
  new AppError(
    "invalid_request",
    "`Last-Event-ID` names no thread here. Follow the run at the address that was in `Location`, or send its `Idempotency-Key`.",
  );
