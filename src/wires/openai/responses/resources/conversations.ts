// Conversations: threads, for clients that create them before their first message.

import { z } from "zod";
import { AppError } from "../../../../agent/core/errors.ts";
import { newThreadId } from "../../../../agent/core/new-ids.ts";
import { Metadata, type Thread } from "../../../../agent/core/records.ts";
import type { ThreadStore } from "../../../../agent/core/stores.ts";
import { deleteThreadTree } from "../../../../engine/runs/thread-actions.ts";
import { createWithMessages } from "../../../../engine/runs/thread-bytes.ts";
import type { Owner } from "../../../../protocol/ids.ts";
import { ownerOf } from "../../../../server/auth/guard.ts";
import type { RouteServices } from "../../../../server/http/services.ts";
import type { App } from "../../../../server/http/validation.ts";
import { following } from "../../pairing.ts";
import { messagesOf, refuseSystem, SentItems } from "../input.ts";

export const Conversation = z.object({
  id: z.string(),
  object: z.literal("conversation"),
  created_at: z.int(),
  metadata: Metadata,
});
const Deleted = z.object({
  id: z.string(),
  object: z.literal("conversation.deleted"),
  deleted: z.literal(true),
});
export const ConversationParams = z.object({ conversation_id: z.string().min(1).max(256) });
const ConversationBody = z
  .looseObject({ metadata: Metadata.nullish(), items: SentItems.nullish() })
  .nullish();

export function conversationRoutes(
  app: App,
  { stores: { threads }, runs, quotas, refusesSystemMessages }: RouteServices,
): void {
  const tags = ["openai"];

  app.post(
    "/conversations",
    {
      schema: {
        summary: "Create a conversation, optionally with its first items",
        tags,
        body: ConversationBody,
        response: { 200: Conversation },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { metadata, items } = request.body ?? {};
      if (refusesSystemMessages) refuseSystem(items ?? [], "items");
      const sent = await messagesOf(owner.tenant, items ?? [], { param: "items", isWhole: true });
      const messages = following({ messages: [] }, sent, "items");
      const thread = { id: newThreadId(), metadata: metadata ?? {}, messages };
      return conversationOf(
        await createWithMessages({ threads, quotas, threadBytes: runs.threadBytes }, owner, thread),
      );
    },
  );

  app.get(
    "/conversations/:conversation_id",
    {
      schema: {
        summary: "Get a conversation",
        tags,
        params: ConversationParams,
        response: { 200: Conversation },
      },
    },
    async (request) =>
      conversationOf(await conversationNamed(threads, ownerOf(request), request.params.conversation_id)),
  );

  app.post(
    "/conversations/:conversation_id",
    {
      schema: {
        summary: "Change the metadata of a conversation",
        tags,
        params: ConversationParams,
        body: z.looseObject({ metadata: Metadata.nullish() }).nullish(),
        response: { 200: Conversation },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { conversation_id: id } = request.params;
      const changed = await threads.update(owner, id, { metadata: request.body?.metadata ?? {} });
      if (changed) return conversationOf(changed);
      throw noConversation(id);
    },
  );

  app.delete(
    "/conversations/:conversation_id",
    {
      schema: {
        summary: "Delete a conversation with its responses",
        tags,
        params: ConversationParams,
        response: { 200: Deleted },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { id } = await conversationNamed(threads, owner, request.params.conversation_id);
      await deleteThreadTree({ threads, quotas }, owner, id);
      return { id, object: "conversation.deleted" as const, deleted: true as const };
    },
  );
}

/** Throws `not_found`. */
export async function conversationNamed(threads: ThreadStore, owner: Owner, id: string): Promise<Thread> {
  const thread = await threads.get(owner, id);
  if (thread) return thread;
  throw noConversation(id);
}

export const noConversation = (id: string) =>
  new AppError("not_found", `There is no conversation \`${id}\`. Create one with POST /v1/conversations.`);

export const conversationOf = ({ id, created_at, metadata }: Thread) => ({
  id,
  object: "conversation" as const,
  created_at: Math.floor(Date.parse(created_at) / 1000),
  metadata,
});
