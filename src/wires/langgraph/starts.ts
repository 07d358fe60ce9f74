// Starts runs, on a thread or without one: streamed, awaited, or in the background.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { newThreadId } from "../../agent/core/new-ids.ts";
import { isSettled, type RunRecord } from "../../agent/core/records.ts";
import { deleteThreadTree } from "../../engine/runs/thread-actions.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { callerOf } from "../../server/http/caller.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { streamRun } from "../reply.ts";
import { sendText } from "./answers.ts";
import { type Begin, beginning } from "./begin.ts";
import { finalValues, Values } from "./final-values.ts";
import { cursorIn, runFrames } from "./frames.ts";
import { RunBody } from "./input.ts";
import { modesIn, streamPath } from "./modes.ts";
import { ThreadParams } from "./resources/threads.ts";
import { contentLocation, Run, runShape, streamed } from "./runs.ts";

const tags = ["langgraph"];

export function startRoutes(app: App, services: RouteServices): void {
  const { stores, quotas, unreadAnswers } = services;
  const { threads } = stores;
  const params = ThreadParams;

  /** A run to start on a thread, which may be created for it. */
  interface RunRequest {
    readonly owner: Owner;
    readonly threadId: string;
    readonly body: RunBody;
    /** The thread is deleted after the response. */
    readonly isStateless?: true;
  }
  type OnThread = FastifyRequest<{ Params: z.infer<typeof ThreadParams>; Body: RunBody }>;
  const onThread = (request: OnThread): RunRequest => ({
    owner: ownerOf(request),
    threadId: request.params.thread_id,
    body: request.body,
  });
  const stateless = (request: FastifyRequest<{ Body: RunBody }>): RunRequest => ({
    owner: ownerOf(request),
    threadId: newThreadId(),
    body: { ...request.body, if_not_exists: "create", command: null },
    isStateless: true,
  });

  app.post(
    "/threads/:thread_id/runs/stream",
    {
      sse: "manual",
      schema: { summary: "Start a run and follow it", tags, params, body: RunBody, response: streamed },
    },
    (request, reply) => stream(request, reply, onThread(request)),
  );

  app.post(
    "/runs/stream",
    {
      sse: "manual",
      schema: {
        summary: "Start a run on a new thread and follow it",
        tags,
        body: RunBody,
        response: streamed,
      },
    },
    (request, reply) => stream(request, reply, stateless(request)),
  );

  app.post(
    "/threads/:thread_id/runs/wait",
    {
      schema: {
        summary: "Start a run and wait for its end",
        tags,
        params,
        body: RunBody,
        response: { 200: Values },
      },
    },
    (request, reply) => wait(request, reply, onThread(request)),
  );

  app.post(
    "/runs/wait",
    {
      schema: {
        summary: "Start a run on a new thread and wait for its end",
        tags,
        body: RunBody,
        response: { 200: Values },
      },
    },
    (request, reply) => wait(request, reply, stateless(request)),
  );

  app.post(
    "/threads/:thread_id/runs",
    { schema: { summary: "Start a run", tags, params, body: RunBody, response: { 200: Run } } },
    (request, reply) => start(request, reply, onThread(request)),
  );

  app.post(
    "/runs",
    {
      schema: {
        summary: "Start a run on a new thread",
        description: "Keeps the new thread, which the run names.",
        tags,
        body: RunBody,
        response: { 200: Run },
      },
    },
    (request, reply) => start(request, reply, stateless(request)),
  );

  const begin = (request: FastifyRequest, { threadId, body }: RunRequest): Promise<Begin> =>
    beginning(services, callerOf(request), threadId, body);

  async function stream(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<undefined> {
    const { owner, body, isStateless } = asked;
    const begun = await begin(request, asked);
    const modesFor = (run: RunRecord) =>
      modesIn(
        { stream_mode: body.stream_mode ?? undefined, stream_subgraphs: body.stream_subgraphs ?? undefined },
        run,
      );
    const run = await streamRun(services, reply, {
      owner,
      start: async (place) => {
        const run = await begun(place);
        const at = contentLocation(run, isStateless);
        reply.header("content-location", at).header("location", streamPath(run, modesFor(run)));
        return run;
      },
      framesOf: (run) => runFrames(stores, { owner, run, after: cursorIn(undefined, run), ...modesFor(run) }),
      cancelsOnLeave: body.on_disconnect === "cancel",
    });
    if (isStateless) await forget(owner, run);
    return undefined;
  }

  async function wait(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<never> {
    const { owner, body, isStateless } = asked;
    const run = await (await begin(request, asked))();
    reply.header("content-location", contentLocation(run, isStateless));
    reply.header("location", `/threads/${run.thread_id}/runs/${run.id}/join`);
    const on_disconnect = body.on_disconnect ?? "continue";
    const json = await finalValues(services, reply, { owner, run, on_disconnect });
    if (isStateless) await forget(owner, run);
    return sendText(reply, json, unreadAnswers);
  }

  async function start(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<Run> {
    const run = await (await begin(request, asked))();
    reply.header("content-location", contentLocation(run, asked.isStateless));
    return runShape(run);
  }

  /** Deletes the thread that was created for a run, once its client has the response. */
  async function forget(owner: Owner, { id, thread_id }: RunRecord): Promise<void> {
    const run = await stores.runs.get(owner, thread_id, id);
    if (!run || !isSettled(run.status)) return;
    await deleteThreadTree({ threads, quotas }, owner, thread_id).catch((error: unknown) =>
      app.log.warn({ err: error, thread_id }, "the thread of a stateless run was not deleted"),
    );
  }
}
