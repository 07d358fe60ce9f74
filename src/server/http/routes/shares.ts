// Shares a thread with the users of its tenant, who can then read it but cannot change it.

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import { Message } from "../../../agent/core/message.ts";
import { Thread } from "../../../agent/core/records.ts";
import { notFound } from "../../../engine/runs/control.ts";
import { addShare, endShare, isShared, Share, sharesOf } from "../../../engine/runs/shares.ts";
import { Id } from "../../../protocol/ids.ts";
import { ownerOf } from "../../auth/guard.ts";
import { OwnerName } from "../../auth/principal.ts";
import { jsonOf } from "../long-responses.ts";
import { messagesAnswer } from "../message-responses.ts";
import { MessagesQuery, pageOf, ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import { type App, fittingJson } from "../validation.ts";

const DAY_S = 86_400;

const NewShare = z.strictObject({
  expires_in: z
    .int()
    .min(60)
    .max(365 * DAY_S)
    .default(7 * DAY_S)
    .describe("Duration of the share in seconds."),
});

const ShareId = z.string().regex(/^share_[0-9A-Za-z]{22}$/, "must be the id of a share");
const SharedParams = z.object({ user: OwnerName, thread_id: Id, share_id: ShareId });

const SharedThread = z
  .object({
    user: z.string().describe("The user who shared the thread."),
    thread_id: Id,
    ...Thread.pick({ title: true, agent: true, updated_at: true }).shape,
  })
  .meta({ id: "SharedThread" });

export function shareRoutes(app: App, { stores: { threads, items }, unreadResponses }: RouteServices): void {
  const tags = ["threads"];
  const toJson = fittingJson(app, Message, {
    method: "GET",
    url: "/shared/:user/:thread_id/:share_id/messages",
  });

  app.post(
    "/threads/:thread_id/shares",
    {
      schema: {
        summary: "Share a thread with the tenant's users, read-only",
        description:
          "Users with the scope `read` who know the share's id can read the thread's messages until the share ends.",
        tags,
        params: ThreadParams,
        body: NewShare,
        response: { 201: Share },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return reply.code(201).send(await addShare(items, owner, thread_id, request.body.expires_in * 1000));
    },
  );

  app.get(
    "/threads/:thread_id/shares",
    {
      schema: {
        summary: "List the active shares of a thread, newest first",
        tags,
        params: ThreadParams,
        response: { 200: z.object({ items: z.array(Share) }) },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { thread_id } = request.params;
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return { items: await sharesOf(items, owner, thread_id) };
    },
  );

  app.delete(
    "/threads/:thread_id/shares/:share_id",
    {
      schema: {
        summary: "End a share",
        tags,
        params: ThreadParams.extend({ share_id: ShareId }),
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id, share_id } = request.params;
      if (!(await endShare(items, ownerOf(request), thread_id, share_id))) throw noShare(share_id);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/shared/:user/:thread_id/:share_id",
    {
      schema: {
        summary: "Get a thread that another user of the tenant shares",
        description: "Returns 404 once the share has ended.",
        tags,
        params: SharedParams,
        response: { 200: SharedThread },
      },
    },
    async (request) => {
      const { user, thread_id, share_id } = request.params;
      const owner = { tenant: ownerOf(request).tenant, user };
      const thread = await threads.get(owner, thread_id);
      if (!thread || !(await isShared(items, owner, thread_id, share_id))) throw noShare(share_id);
      const { title, agent, updated_at } = thread;
      return { user, thread_id, title, agent, updated_at };
    },
  );

  app.get(
    "/shared/:user/:thread_id/:share_id/messages",
    {
      schema: {
        summary: "List the messages of a shared thread, oldest first",
        description:
          "Returns pages in the same form as `GET /threads/{thread_id}/messages`. Returns 404 once the share has ended.",
        tags,
        params: SharedParams,
        querystring: MessagesQuery,
        response: { 200: pageOf(Message) },
      },
    },
    async (request, reply) => {
      const { user, thread_id: id, share_id } = request.params;
      const owner = { tenant: ownerOf(request).tenant, user };
      if (!(await threads.get(owner, id)) || !(await isShared(items, owner, id, share_id)))
        throw noShare(share_id);
      const open = () => unreadResponses.open(reply);
      return jsonOf(reply, await messagesAnswer({ threads, toJson, owner, id, open }, request.query));
    },
  );
}

const noShare = (id: string) => new AppError("not_found", `There is no share \`${id}\`, or it has ended.`);
