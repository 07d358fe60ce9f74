// Conversations: threads, for clients that name them before they speak.

import { z } from "zod";
import { AppError } from "../../../../core/errors.ts";
import type { Owner } from "../../../../core/ids.ts";
import { newThreadId } from "../../../../core/ids.ts";
import { Metadata, type Thread } from "../../../../core/records.ts";
import { openOn } from "../../../../runs/start.ts";
import { deleteThreadTree } from "../../../../runs/thread-actions.ts";
import { createWithMessages } from "../../../../runs/thread-bytes.ts";
import { ownerOf } from "../../../auth/guard.ts";
import { inSlices, jsonOf, objectOf, payloadOf } from "../../../long-answers.ts";
import type { RouteServices } from "../../../services.ts";
import { type App, fittingJson } from "../../../validation.ts";
import { refused } from "../given.ts";
import { messagesOf, SentItem } from "./input.ts";
import { historyOf, type Item } from "./items.ts";

const Conversation = z.object({
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
const ListedItem = z.looseObject({ id: z.string(), type: z.string() });
export const ItemList = z.object({
  object: z.literal("list"),
  data: z.array(ListedItem),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});
export const ListQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(["asc", "desc"]).default("desc"),
  after: z.string().max(512).optional().describe("The id of an item."),
});
const ConversationParams = z.object({ conversation_id: z.string().min(1).max(256) });
const ItemParams = ConversationParams.extend({ item_id: z.string().min(1).max(512) });
const ConversationBody = z
  .looseObject({ metadata: Metadata.nullish(), items: z.array(SentItem).max(20).nullish() })
  .nullish();

const ITEM_WRITES = [
  ["POST", ""],
  ["DELETE", "/:item_id"],
] as const;

/** One page of items, which come oldest first. Throws `invalid_request` for a place that is none. */
export function listOf(items: readonly Item[], { limit, order, after }: z.infer<typeof ListQuery>) {
  const all = order === "asc" ? [...items] : [...items].reverse();
  const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw refused("after", `there is no item \`${after}\` here.`);
  const data = all.slice(start, start + limit);
  return {
    object: "list" as const,
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: start + limit < all.length,
  };
}

export function conversationRoutes(
  app: App,
  { stores: { threads }, runs, quotas, agents, httpTools, unreadAnswers }: RouteServices,
): void {
  const tags = ["openai"];
  const toJson = fittingJson(app, ListedItem, {
    method: "GET",
    url: "/conversations/:conversation_id/items",
  });

  app.post(
    "/conversations",
    {
      schema: {
        summary: "Make a conversation, with its first items if there are any",
        tags,
        body: ConversationBody,
        response: { 200: Conversation },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { metadata, items } = request.body ?? {};
      const id = newThreadId();
      const thread = { id, metadata: metadata ?? {}, messages: await messagesOf(owner.tenant, items ?? []) };
      return conversationOf(
        await createWithMessages({ threads, quotas, threadBytes: runs.threadBytes }, owner, thread),
      );
    },
  );

  app.get(
    "/conversations/:conversation_id",
    {
      schema: {
        summary: "A conversation",
        tags,
        params: ConversationParams,
        response: { 200: Conversation },
      },
    },
    async (request) => conversationOf(await threadNamed(ownerOf(request), request.params.conversation_id)),
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
      const { id } = await threadNamed(owner, request.params.conversation_id);
      await deleteThreadTree({ threads, quotas }, owner, id);
      return { id, object: "conversation.deleted" as const, deleted: true as const };
    },
  );

  app.get(
    "/conversations/:conversation_id/items",
    {
      schema: {
        summary: "The items of a conversation, newest first",
        tags,
        params: ConversationParams,
        querystring: ListQuery,
        response: { 200: ItemList },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { id } = await threadNamed(owner, request.params.conversation_id);
      const { data, ...rest } = listOf(await itemsIn(owner, id), request.query);
      const lists = inSlices(owner.tenant, data, toJson);
      const answer = objectOf(owner.tenant, { name: "data", lists, restOf: () => rest });
      const kept = await threads.bytes(owner, id);
      return jsonOf(reply, await payloadOf(answer, () => unreadAnswers.open(reply), kept));
    },
  );

  app.get(
    "/conversations/:conversation_id/items/:item_id",
    {
      schema: {
        summary: "An item of a conversation",
        tags,
        params: ItemParams,
        response: { 200: ListedItem },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { conversation_id, item_id } = request.params;
      const { id } = await threadNamed(owner, conversation_id);
      const item = (await itemsIn(owner, id)).find((each) => each.id === item_id);
      if (item) return item;
      throw new AppError("not_found", `Conversation \`${id}\` has no item \`${item_id}\`.`);
    },
  );

  // Named, so that a session of the Agents SDK learns what to use in its place.
  for (const [method, path] of ITEM_WRITES)
    app.route({
      method,
      url: `/conversations/:conversation_id/items${path}`,
      schema: {
        summary: "Refused: only responses write items",
        tags,
        params: path === "" ? ConversationParams : ItemParams,
        response: { 405: z.looseObject({ error: z.looseObject({ message: z.string() }) }) },
      },
      handler: async (request) => {
        await threadNamed(ownerOf(request), request.params.conversation_id);
        throw new AppError(
          "method_not_allowed",
          "Items are written by the agent's runs, which keep the conversation whole. Send `conversation` with POST /v1/responses (`conversationId` in the Agents SDK) instead of a session, or `items` with POST /v1/conversations.",
        );
      },
    });

  /** With the ids that they had when they were streamed. */
  async function itemsIn(owner: Owner, id: string): Promise<Item[]> {
    const [messages, open, tools] = await Promise.all([
      threads.messages(owner, id),
      openOn(threads, owner, id),
      httpTools.list(owner.tenant),
    ]);
    const ofTenant = new Set(tools.map(({ name }) => name));
    const isServerTool = (name: string) =>
      agents.isReserved(name) || name.startsWith("mcp__") || ofTenant.has(name);
    return historyOf({ messages, open, isServerTool });
  }

  async function threadNamed(owner: Owner, id: string): Promise<Thread> {
    const thread = await threads.get(owner, id);
    if (thread) return thread;
    throw noConversation(id);
  }
}

export const noConversation = (id: string) =>
  new AppError("not_found", `There is no conversation \`${id}\`. Create one with POST /v1/conversations.`);

const conversationOf = ({ id, created_at, metadata }: Thread) => ({
  id,
  object: "conversation" as const,
  created_at: Math.floor(Date.parse(created_at) / 1000),
  metadata,
});
