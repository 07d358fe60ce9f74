// Users' ratings of an agent's answers.

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { notFound } from "../../../engine/runs/control.ts";
import { Feedback, feedbackOf, Rating, rate, removeRating } from "../../../engine/runs/feedback.ts";
import { ownerOf } from "../../auth/guard.ts";
import { ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const RatedParams = ThreadParams.extend({ message_id: z.string().min(1).max(256) });

export function feedbackRoutes(app: App, { stores: { threads, items } }: RouteServices): void {
  const tags = ["threads"];

  app.put(
    "/threads/:thread_id/messages/:message_id/feedback",
    {
      schema: {
        summary: "Rate an answer, with an optional comment",
        description: "Replaces an earlier rating. Returns 400 if the message is not an agent's answer.",
        tags,
        params: RatedParams,
        body: Rating,
        response: { 200: Feedback },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { thread_id: thread, message_id: message } = request.params;
      if (!(await threads.get(owner, thread))) throw notFound("thread", thread);
      return rate({ threads, items }, owner, { thread, message }, request.body);
    },
  );

  app.get(
    "/threads/:thread_id/feedback",
    {
      schema: {
        summary: "List the rated answers of a thread, most recently changed first",
        tags,
        params: ThreadParams,
        response: { 200: z.object({ items: z.array(Feedback) }) },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return { items: await feedbackOf(items, owner, thread_id) };
    },
  );

  app.delete(
    "/threads/:thread_id/messages/:message_id/feedback",
    {
      schema: { summary: "Remove a rating", tags, params: RatedParams, response: { 204: z.null() } },
    },
    async (request, reply) => {
      const { thread_id: thread, message_id: message } = request.params;
      if (!(await removeRating(items, ownerOf(request), { thread, message })))
        throw new AppError("not_found", `There is no rating for the message \`${message}\`.`);
      return reply.code(204).send(null);
    },
  );
}
