// Interrupts: open questions, and the answers that resume their runs.

import { z } from "zod";
import { RunRecord } from "../../../agent/core/records.ts";
import { notFound } from "../../../engine/runs/control.ts";
import { listInterrupts } from "../../../engine/runs/find.ts";
import { openOn, resumeRun } from "../../../engine/runs/start.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { Interrupt } from "../../../protocol/interrupt.ts";
import { ownerOf, sentBy } from "../../auth/guard.ts";
import { finishedJson, idempotencyKey, replyWithRun } from "../run-stream.ts";
import { FinishedRun, IdempotencyKey, PageQuery, ResumeBody, RunParams, ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const Stream = z.string().describe("Server-Sent Events, as in the stream of a run.");

export const OpenInterrupt = Interrupt.extend({ thread_id: z.string() }).meta({ id: "OpenInterrupt" });

export function interruptRoutes(app: App, services: RouteServices): void {
  const { stores } = services;
  const tags = ["interrupts"];
  const json = finishedJson(app, "/threads/:thread_id/runs/:run_id/resume");

  app.get(
    "/threads/:thread_id/interrupts",
    {
      schema: {
        summary: "List the open interrupts of a thread",
        tags,
        params: ThreadParams,
        response: { 200: z.object({ items: z.array(Interrupt) }) },
      },
    },
    async (request) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      if (!(await stores.threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return { items: await openOn(stores.threads, owner, thread_id) };
    },
  );

  app.get(
    "/interrupts",
    {
      schema: {
        summary: "List the open interrupts of all the user's threads",
        description: "By thread, most recently changed first.",
        tags,
        querystring: PageQuery,
        response: { 200: z.object({ items: z.array(OpenInterrupt), next_cursor: z.string().optional() }) },
      },
    },
    async (request) => listInterrupts(stores.threads, ownerOf(request), omitUndefined(request.query)),
  );

  app.post(
    "/threads/:thread_id/runs/:run_id/resume",
    {
      sse: "manual",
      schema: {
        summary: "Answer an interrupted run and continue it",
        description:
          "Starts a new run on the thread with the answers. Interrupts without an answer are asked again. The first answer counts; later requests return 409. A repeated request with the same `Idempotency-Key` rejoins the run. The response is the same as for starting a run.",
        tags,
        params: RunParams,
        headers: IdempotencyKey,
        body: ResumeBody,
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
      const { answers, tools } = request.body;
      const owner = ownerOf(request);
      const resume = {
        ...request.params,
        answers,
        ...sentBy(request),
        ...omitUndefined({ tools, idempotency_key: idempotencyKey(request) }),
      };
      return replyWithRun(services, { owner, ...request.body }, { request, reply, json }, (stream) =>
        resumeRun(services.runs, owner, { ...resume, stream }),
      );
    },
  );
}
