// What front ends do with a conversation as a whole: go on with it elsewhere, name it, see what it has used.

import { Thread } from "../../core/records.ts";
import { given } from "../../lib/given.ts";
import { forkThread } from "../../runs/fork.ts";
import { notFound } from "../../runs/manager.ts";
import { ThreadUsage, threadUsage } from "../../runs/thread-usage.ts";
import { nameThread } from "../../runs/title.ts";
import { ownerOf } from "../auth/guard.ts";
import { gone } from "../gone.ts";
import { ForkThreadBody, NameThreadBody, ThreadParams } from "../schemas.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

export function threadActionRoutes(app: App, { stores, agents, quotas }: HttpServices): void {
  const tags = ["threads"];
  const params = ThreadParams;
  const { threads } = stores;

  app.post(
    "/threads/:thread_id/fork",
    {
      schema: {
        summary: "Another thread, with what was said up to a message",
        description:
          "Takes todos and files along as they are now; nothing that waits for an answer, and nothing that was allowed.",
        tags,
        params,
        body: ForkThreadBody,
        response: { 201: Thread },
      },
    },
    async (request, reply) => {
      const from = { owner: ownerOf(request), threadId: request.params.thread_id };
      const thread = await forkThread({ threads, quotas }, from, given(request.body));
      return reply.code(201).header("location", `/threads/${thread.id}`).send(thread);
    },
  );

  app.post(
    "/threads/:thread_id/title",
    {
      schema: {
        summary: "Have the agent's model name a thread",
        description: "One short model call, by what was said first. It counts as any other.",
        tags,
        params,
        body: NameThreadBody,
        response: { 200: Thread },
      },
    },
    async (request, reply) => {
      const which = { owner: ownerOf(request), threadId: request.params.thread_id };
      return nameThread({ stores, agents, quotas }, which, gone(reply));
    },
  );

  app.get(
    "/threads/:thread_id/usage",
    { schema: { summary: "What the runs of a thread used", tags, params, response: { 200: ThreadUsage } } },
    async (request) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return threadUsage(stores.runs, owner, thread_id);
    },
  );
}
