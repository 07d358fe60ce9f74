// Threads: create, find, read, rename, clear, delete.

import { z } from "zod";
import { Message } from "../../../agent/core/message.ts";
import { newThreadId } from "../../../agent/core/new-ids.ts";
import { Thread } from "../../../agent/core/records.ts";
import { withHold } from "../../../engine/quotas/holds.ts";
import { assertNoBranch } from "../../../engine/runs/branches.ts";
import { notFound } from "../../../engine/runs/control.ts";
import { FoundThread, listThreads, searchThreads } from "../../../engine/runs/find.ts";
import {
  clearThreadTree,
  deleteThreadTree,
  forkThread,
  nameThread,
  ThreadUsage,
  threadUsage,
} from "../../../engine/runs/thread-actions.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { ownerOf } from "../../auth/guard.ts";
import { clientDisconnect } from "../client-disconnect.ts";
import { jsonOf, pageSender } from "../long-responses.ts";
import { messagesAnswer, stateAnswer } from "../message-responses.ts";
import {
  CreateThreadBody,
  ForkThreadBody,
  MessagesQuery,
  NameThreadBody,
  pageOf,
  ThreadParams,
  ThreadState,
  ThreadsQuery,
  UpdateThreadBody,
} from "../schemas.ts";
import type { HttpServices, RouteServices } from "../services.ts";
import { type App, fittingJson } from "../validation.ts";

export function threadRoutes(
  app: App,
  { stores: { threads }, quotas, unreadResponses }: RouteServices,
): void {
  const tags = ["threads"];
  const params = ThreadParams;
  const toJson = fittingJson(app, Message, { method: "GET", url: "/threads/:thread_id/messages" });
  const sendPage = pageSender(
    unreadResponses,
    fittingJson(app, FoundThread, { method: "GET", url: "/threads" }),
  );

  app.post(
    "/threads",
    { schema: { summary: "Create a thread", tags, body: CreateThreadBody, response: { 201: Thread } } },
    async (request, reply) => {
      const { id = newThreadId(), ...rest } = request.body;
      assertNoBranch(id);
      const owner = ownerOf(request);
      const thread = await withHold(quotas, { owner, id }, () =>
        threads.create(owner, { id, ...omitUndefined(rest) }),
      );
      return reply.code(201).header("location", `/threads/${thread.id}`).send(thread);
    },
  );

  app.get(
    "/threads",
    {
      schema: {
        summary: "List threads, most recently changed first",
        description:
          "If you search in messages, a page may have few items or none. To continue the search, use `next_cursor`.",
        tags,
        querystring: ThreadsQuery,
        response: { 200: pageOf(FoundThread) },
      },
    },
    async (request, reply) => {
      const { in: place, ...query } = request.query;
      const { q } = query;
      const owner = ownerOf(request);
      if (place === "title" || !q)
        return sendPage(reply, await listThreads(threads, owner, omitUndefined(query)));
      const search = { ...omitUndefined(query), q };
      return sendPage(reply, await searchThreads(threads, owner, search, clientDisconnect(reply)));
    },
  );

  app.get(
    "/threads/:thread_id",
    { schema: { summary: "Get a thread", tags, params, response: { 200: Thread } } },
    async (request) => found(await threads.get(ownerOf(request), request.params.thread_id), request.params),
  );

  app.patch(
    "/threads/:thread_id",
    {
      schema: {
        summary: "Rename or annotate a thread",
        tags,
        params,
        body: UpdateThreadBody,
        response: { 200: Thread },
      },
    },
    async (request) => {
      const { thread_id } = request.params;
      return found(
        await threads.update(ownerOf(request), thread_id, omitUndefined(request.body)),
        request.params,
      );
    },
  );

  app.delete(
    "/threads/:thread_id",
    {
      schema: {
        summary: "Delete a thread with all its runs, and its subagents' threads",
        tags,
        params,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      found((await deleteThreadTree({ threads, quotas }, owner, thread_id)) || undefined, request.params);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/threads/:thread_id/messages",
    {
      schema: {
        summary: "List the messages of a thread, oldest first",
        tags,
        params,
        description:
          "A page ends after `limit` messages or 8 MiB. Pass `next_cursor` as `after` to get the next page.",
        querystring: MessagesQuery,
        response: { 200: pageOf(Message) },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id: id } = request.params;
      found(await threads.get(owner, id), request.params);
      const open = () => unreadResponses.open(reply);
      return jsonOf(reply, await messagesAnswer({ threads, toJson, owner, id, open }, request.query));
    },
  );

  app.delete(
    "/threads/:thread_id/messages",
    {
      schema: {
        summary: "Delete messages, state and the subagents' threads; keep the thread",
        tags,
        params,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      found((await clearThreadTree({ threads, quotas }, owner, thread_id)) || undefined, request.params);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/threads/:thread_id/state",
    {
      schema: {
        summary: "Get the state of a thread: messages, todos, files, status",
        tags,
        params,
        response: { 200: ThreadState },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      const thread = found(await threads.get(owner, thread_id), request.params);
      const restOf = async () => {
        const { messages: _, ...state } = await threads.state(owner, thread_id);
        return { ...state, thread_id, status: thread.status, version: thread.message_count };
      };
      const open = () => unreadResponses.open(reply);
      return jsonOf(reply, await stateAnswer({ threads, toJson, owner, id: thread_id, open }, restOf));
    },
  );
}

function found<T>(thing: T | undefined, { thread_id }: { thread_id: string }): T {
  if (thing === undefined) throw notFound("thread", thread_id);
  return thing;
}

export function threadActionRoutes(app: App, { stores, agents, quotas }: HttpServices): void {
  const tags = ["threads"];
  const params = ThreadParams;
  const { threads } = stores;

  app.post(
    "/threads/:thread_id/fork",
    {
      schema: {
        summary: "Fork a thread: create a thread with a copy of its messages up to one of them",
        description: "Copies the current todos and files. Does not copy open interrupts or permissions.",
        tags,
        params,
        body: ForkThreadBody,
        response: { 201: Thread },
      },
    },
    async (request, reply) => {
      const from = { owner: ownerOf(request), threadId: request.params.thread_id };
      const thread = await forkThread({ threads, quotas }, from, omitUndefined(request.body));
      return reply.code(201).header("location", `/threads/${thread.id}`).send(thread);
    },
  );

  app.post(
    "/threads/:thread_id/title",
    {
      schema: {
        summary: "Generate a title for a thread",
        description: "Makes one short model call with the first messages. The call counts as usage.",
        tags,
        params,
        body: NameThreadBody,
        response: { 200: Thread },
      },
    },
    async (request, reply) => {
      const which = { owner: ownerOf(request), threadId: request.params.thread_id };
      return nameThread({ stores, agents, quotas }, which, clientDisconnect(reply));
    },
  );

  app.get(
    "/threads/:thread_id/usage",
    { schema: { summary: "Get the usage of a thread's runs", tags, params, response: { 200: ThreadUsage } } },
    async (request) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return threadUsage(stores.runs, owner, thread_id);
    },
  );
}
