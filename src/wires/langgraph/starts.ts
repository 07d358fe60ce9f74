// Starts runs, on a thread or without one: streamed, awaited, or in the background.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { RunRecord } from "../../agent/core/records.ts";
import { type OwnThread, ownThread } from "../../engine/temporary-threads/own-thread.ts";
import type { Owner } from "../../protocol/ids.ts";
import { ownerOf } from "../../server/auth/guard.ts";
import { callerOf } from "../../server/http/caller.ts";
import { idempotencyKey, toTheirEnd } from "../../server/http/run-stream.ts";
import type { RouteServices } from "../../server/http/services.ts";
import type { App } from "../../server/http/validation.ts";
import { streamRun } from "../reply.ts";
import { sendText } from "./answers.ts";
import { finalValues, Values } from "./final-values.ts";
import { cursorIn, runFrames } from "./frames.ts";
import { isKept, RunBody } from "./input.ts";
import { modesIn, streamPath } from "./modes.ts";
import { prepare, type Starter } from "./prepare.ts";
import { ThreadParams } from "./resources/threads.ts";
import { contentLocation, Run, runShape, streamed } from "./runs.ts";

const tags = ["langgraph"];

export function startRoutes(app: App, services: RouteServices): void {
  const { stores, unreadResponses } = services;
  const params = ThreadParams;

  /** A run to start on a thread, which may be created for it. */
  interface RunRequest {
    readonly owner: Owner;
    readonly threadId: string;
    readonly body: RunBody;
    /** The thread to create if the request does not specify a thread. */
    readonly own?: OwnThread;
  }
  type OnThread = FastifyRequest<{ Params: z.infer<typeof ThreadParams>; Body: RunBody }>;
  const onThread = (request: OnThread): RunRequest => ({
    owner: ownerOf(request),
    threadId: request.params.thread_id,
    body: request.body,
  });
  const stateless = (request: FastifyRequest<{ Body: RunBody }>): RunRequest => {
    const owner = ownerOf(request);
    const own = ownThread(services.temporaryThreads, owner, {
      key: idempotencyKey(request),
      isKept: isKept(request.body),
    });
    const body = { ...request.body, if_not_exists: "create", command: null } as const;
    return { owner, threadId: own.thread_id, body, own };
  };

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
        description:
          "The run names the new thread, which is deleted after the run unless `on_completion` is `keep`.",
        tags,
        body: RunBody,
        response: { 200: Run },
      },
    },
    (request, reply) => start(request, reply, stateless(request)),
  );

  const prepareOwn = async (
    request: FastifyRequest,
    { threadId, body, own }: RunRequest,
  ): Promise<Starter> => {
    const starter = await prepare(services, callerOf(request), threadId, body);
    return own ? (place) => own.begin(() => starter(place)) : starter;
  };

  async function stream(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<undefined> {
    const { owner, body, own } = asked;
    const starter = await prepareOwn(request, asked);
    const modesFor = (run: RunRecord) =>
      modesIn(
        { stream_mode: body.stream_mode ?? undefined, stream_subgraphs: body.stream_subgraphs ?? undefined },
        run,
      );
    await streamRun(services, reply, {
      owner,
      start: async (place) => {
        const run = await starter(place);
        reply.header("content-location", contentLocation(run, own !== undefined));
        reply.header("location", streamPath(run, modesFor(run)));
        return run;
      },
      framesOf: (run) => {
        const frames = runFrames(stores, { owner, run, after: cursorIn(undefined, run), ...modesFor(run) });
        return own ? toTheirEnd(frames, own.wasRead) : frames;
      },
      cancelsOnLeave: body.on_disconnect === "cancel",
    });
    return undefined;
  }

  async function wait(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<never> {
    const { owner, body, own } = asked;
    const run = await (await prepareOwn(request, asked))();
    reply.header("content-location", contentLocation(run, own !== undefined));
    reply.header("location", `/threads/${run.thread_id}/runs/${run.id}/join`);
    const on_disconnect = body.on_disconnect ?? "continue";
    const json = await finalValues(services, reply, { owner, run, on_disconnect });
    if (own) reply.raw.once("finish", () => void own.wasRead());
    return sendText(reply, json, unreadResponses);
  }

  async function start(request: FastifyRequest, reply: FastifyReply, asked: RunRequest): Promise<Run> {
    const run = await (await prepareOwn(request, asked))();
    reply.header("content-location", contentLocation(run, asked.own !== undefined));
    return runShape(run);
  }
}
