// Runs in LangGraph's API: join, list and cancel them.

import { z } from "zod";
import { AppError } from "../../agent/core/errors.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { getRun, keyOf, notFound, settledRun } from "../../engine/runs/control.ts";
import { boundedList } from "../../lib/bounded-schemas.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { clientDisconnect } from "../../server/http/client-disconnect.ts";
import { cancelIfActive, lastEventId } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { sendText } from "./answers.ts";
import { finalValues, Values } from "./final-values.ts";
import { cursorIn, runFrames } from "./frames.ts";
import { modesIn, sentMetadata, strategyOf, streamPath } from "./modes.ts";
import { assistantIdOf } from "./resources/assistants.ts";
import { ThreadParams } from "./resources/threads.ts";

const tags = ["langgraph"];

const STATUSES = ["pending", "running", "error", "success", "timeout", "interrupted"] as const;
export const Run = z.looseObject({ run_id: z.string(), thread_id: z.string(), status: z.enum(STATUSES) });
export type Run = z.infer<typeof Run>;
const Stream = z
  .string()
  .describe(
    "Server-Sent Events: first `metadata`, then events of each `stream_mode`, and last `error` or `end`.",
  );

/** The response of a route that sends a stream. */
export const streamed = { 200: { content: { "text/event-stream": { schema: Stream } } } };

/** Returns the path from which clients read the run's id. Nothing may follow the id. */
export const contentLocation = ({ id, thread_id }: RunRecord, isStateless = false) =>
  isStateless ? `/runs/${id}` : `/threads/${thread_id}/runs/${id}`;

export const runShape = (run: RunRecord): Run => ({
  run_id: run.id,
  thread_id: run.thread_id,
  assistant_id: assistantIdOf(run.agent),
  status: run.status === "cancelled" ? "interrupted" : run.status,
  metadata: { ...sentMetadata(run.metadata), graph_id: run.agent, assistant_id: assistantIdOf(run.agent) },
  kwargs: {},
  multitask_strategy: strategyOf(run),
  created_at: run.created_at,
  updated_at: run.ended_at ?? run.created_at,
});

const RunParams = ThreadParams.extend({ run_id: z.string().min(1).max(128) });
const Flag = z.enum(["0", "1", "true", "false"]).default("0");
const isSet = (flag: z.infer<typeof Flag>) => flag === "1" || flag === "true";
const JoinQuery = z.looseObject({ cancel_on_disconnect: Flag });
const StreamQuery = JoinQuery.extend({
  stream_mode: z.union([z.string().max(256), z.array(z.string().max(64)).max(16)]).optional(),
  stream_subgraphs: Flag.optional(),
});
const ListQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(1000).default(10),
  offset: z.coerce.number().int().min(0).max(100_000).default(0),
  status: z.enum(STATUSES).optional(),
});
const CancelQuery = z.looseObject({
  wait: Flag,
  action: z.enum(["interrupt", "rollback"]).default("interrupt"),
});
const CancelBody = z.looseObject({
  thread_id: z.string().min(1).max(1024).nullish(),
  run_ids: boundedList(z.string().max(128), 1000).nullish(),
  status: z.enum(["pending", "running", "all"]).nullish(),
});

export function runRoutes(app: App, services: RouteServices): void {
  const { runs, stores, streams, unreadResponses } = services;
  const { threads } = stores;
  const params = ThreadParams;

  app.get(
    "/threads/:thread_id/runs",
    {
      schema: {
        summary: "List the runs of a thread, newest first",
        tags,
        params,
        querystring: ListQuery,
        response: { 200: z.array(Run) },
      },
    },
    async (request) => {
      const { limit, offset, status } = request.query;
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      const all = (await newestRuns(owner, thread_id)).map(runShape);
      return all.filter((run) => status === undefined || run.status === status).slice(offset, offset + limit);
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id",
    { schema: { summary: "Get a run", tags, params: RunParams, response: { 200: Run } } },
    async (request) => runShape(await getRun(runs, { owner: ownerOf(request), ...request.params })),
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/stream",
    {
      sse: "manual",
      exposeHeadRoute: false,
      schema: {
        summary: "Follow a run, even after it has ended",
        description:
          "Starts after the frame named by `Last-Event-ID`. By default, uses the modes that the run was started with.",
        tags,
        params: RunParams,
        querystring: StreamQuery,
        response: streamed,
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const run = await getRun(runs, { owner, ...request.params });
      const { stream_mode, stream_subgraphs, cancel_on_disconnect } = request.query;
      const modes = modesIn(
        {
          stream_mode,
          stream_subgraphs: stream_subgraphs === undefined ? undefined : isSet(stream_subgraphs),
        },
        run,
      );
      const after = cursorIn(lastEventId(request), run);
      reply.header("content-location", contentLocation(run)).header("location", streamPath(run, modes));
      const end = await streams.send(
        reply,
        runFrames(stores, { owner, run, after, ...modes }),
        "comment",
        "cut",
      );
      if (end === "left" && isSet(cancel_on_disconnect)) await cancelIfActive(runs, keyOf(owner, run));
      return undefined;
    },
  );

  app.get(
    "/threads/:thread_id/runs/:run_id/join",
    {
      schema: {
        summary: "Wait for the end of a run",
        tags,
        params: RunParams,
        querystring: JoinQuery,
        response: { 200: Values },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const run = await getRun(runs, { owner, ...request.params });
      const { cancel_on_disconnect } = request.query;
      const on_disconnect = isSet(cancel_on_disconnect) ? "cancel" : "continue";
      const json = await finalValues(services, reply, { owner, run, on_disconnect });
      return sendText(reply, json, unreadResponses);
    },
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/cancel",
    {
      schema: {
        summary: "Cancel a run",
        description:
          "With `wait=1`, returns 204 once the run has ended. The run's changes are kept, even with `action=rollback`.",
        tags,
        params: RunParams,
        querystring: CancelQuery,
        response: { 202: z.object({}), 204: z.null() },
      },
    },
    async (request, reply) => {
      const key = { owner: ownerOf(request), ...request.params };
      await getRun(runs, key);
      await cancelIfActive(runs, key);
      if (!isSet(request.query.wait)) return reply.code(202).send({});
      const { status } = await settledRun(
        runs,
        key,
        AbortSignal.any([clientDisconnect(reply), streams.closing]),
      );
      return isSettled(status) ? reply.code(204).send(null) : reply.code(202).send({});
    },
  );

  app.post(
    "/runs/cancel",
    {
      schema: { summary: "Cancel runs of a thread", tags, body: CancelBody, response: { 204: z.null() } },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id, run_ids, status } = request.body;
      if (!thread_id) throw new AppError("invalid_request", "thread_id: is required.");
      const { thread_id: id } = ThreadParams.parse({ thread_id });
      if (!(await threads.get(owner, id))) throw notFound("thread", id);
      const wanted = run_ids && new Set(run_ids);
      const active = (await newestRuns(owner, id)).filter(
        (run) =>
          !isSettled(run.status) &&
          (!wanted || wanted.has(run.id)) &&
          (!status || status === "all" || status === run.status),
      );
      for (const run of active) await cancelIfActive(runs, keyOf(owner, run));
      return reply.code(204).send(null);
    },
  );

  async function newestRuns(owner: Owner, threadId: string): Promise<RunRecord[]> {
    const found: RunRecord[] = [];
    for (let cursor: string | undefined; found.length < MOST; ) {
      const page = await stores.runs.list(owner, threadId, { limit: PAGE, ...omitUndefined({ cursor }) });
      found.push(...page.items);
      cursor = page.next_cursor;
      if (cursor === undefined) break;
    }
    return found;
  }
}

/** The maximum number of a thread's runs to list. */
const MOST = 1000;
const PAGE = 200;
