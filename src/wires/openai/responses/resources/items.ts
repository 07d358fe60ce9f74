// The items of conversations: read, add and delete them, as the sessions of the Agents SDK do.

import { z } from "zod";
import { AppError } from "../../../../agent/core/errors.ts";
import { type Message, unanswered } from "../../../../agent/core/message.ts";
import type { RunRecord, Thread } from "../../../../agent/core/records.ts";
import { newestRun } from "../../../../engine/runs/control.ts";
import { appendMessages, awaitedCalls, replaceMessages, rewritten } from "../../../../engine/runs/rewrite.ts";
import { openOn } from "../../../../engine/runs/start.ts";
import type { Owner } from "../../../../protocol/ids.ts";
import { ownerOf } from "../../../../server/auth/guard.ts";
import { inSlices, jsonOf, objectOf, payloadOf } from "../../../../server/http/long-responses.ts";
import type { RouteServices } from "../../../../server/http/services.ts";
import { type App, fittingJson } from "../../../../server/http/validation.ts";
import { refused } from "../../given.ts";
import { following } from "../../pairing.ts";
import { type ConversationHistory, historyOf, type Item } from "../history.ts";
import { messagesOf, refuseSystem, responsesIn, SentItems } from "../input.ts";
import { Conversation, ConversationParams, conversationNamed, conversationOf } from "./conversations.ts";
import { ItemList, ListedItem, ListQuery, listOf } from "./item-list.ts";
import { withoutItem } from "./without-item.ts";

const ItemParams = ConversationParams.extend({ item_id: z.string().min(1).max(512) });
const ItemsBody = z.looseObject({ items: SentItems });

/** The maximum time to wait for the run that changes the thread, in ms. The run may have to wait for a free slot. */
const WAIT_MS = 10_000;

export function itemRoutes(app: App, services: RouteServices): void {
  const { stores, runs, streams, agents, httpTools, unreadResponses, refusesSystemMessages } = services;
  const { threads } = stores;
  const tags = ["openai"];
  const url = "/conversations/:conversation_id/items";
  const toJson = fittingJson(app, ListedItem, { method: "GET", url });

  app.get(
    url,
    {
      schema: {
        summary: "List the items of a conversation, newest first",
        tags,
        params: ConversationParams,
        querystring: ListQuery,
        response: { 200: ItemList },
      },
    },
    async (request, reply) => {
      const owner = ownerOf(request);
      const { id } = await conversationNamed(threads, owner, request.params.conversation_id);
      const { data, ...rest } = listOf(historyOf(await historyIn(owner, id)), request.query);
      const lists = inSlices(owner.tenant, data, toJson);
      const answer = objectOf(owner.tenant, { name: "data", lists, restOf: () => rest });
      const kept = await threads.bytes(owner, id);
      return jsonOf(reply, await payloadOf(answer, () => unreadResponses.open(reply), kept));
    },
  );

  app.post(
    url,
    {
      schema: {
        summary: "Add items to a conversation",
        description:
          "Runs no agent. Each output needs a matching call, either among the items or in the conversation. Returns the added items.",
        tags,
        params: ConversationParams,
        body: ItemsBody,
        response: { 200: ItemList },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { items } = request.body;
      if (refusesSystemMessages) refuseSystem(items, "items");
      const thread = await conversationNamed(threads, owner, request.params.conversation_id);
      const history = await historyIn(owner, thread.id);
      const { messages, open } = history;
      const answered = new Set(responsesIn(items, open).map(({ id }) => id));
      assertWaitsFor(thread, open.filter(({ id, kind }) => kind !== "tool" || !answered.has(id)).length);
      const awaited = awaitedCalls(thread, messages, open);
      const run_id = (await newestRun(stores.runs, owner, thread.id))?.id;
      const sent = await messagesOf(owner.tenant, items, { param: "items", isWhole: true });
      const added = following({ messages, run_id, awaited }, sent, "items");
      if (added.length > 0) await finished(owner, await appendMessages(runs, owner, thread, added));
      const known = new Set(historyOf(history).map(({ id }) => id));
      const now = historyOf({ ...history, messages: [...messages, ...added], open: [] });
      return wholeList(now.filter(({ id }) => !known.has(id)));
    },
  );

  app.get(
    `${url}/:item_id`,
    {
      schema: {
        summary: "Get an item of a conversation",
        tags,
        params: ItemParams,
        response: { 200: ListedItem },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { conversation_id, item_id } = request.params;
      const { id } = await conversationNamed(threads, owner, conversation_id);
      return itemNamed(await historyIn(owner, id), { id, item_id });
    },
  );

  app.delete(
    `${url}/:item_id`,
    {
      schema: {
        summary: "Delete an item of a conversation",
        description:
          "Deletes a call together with its output, and an answer together with its reasoning. The previous conversation becomes a branch of its thread.",
        tags,
        params: ItemParams,
        response: { 200: Conversation },
      },
    },
    async (request) => {
      const owner = ownerOf(request);
      const { conversation_id, item_id } = request.params;
      const thread = await conversationNamed(threads, owner, conversation_id);
      const history = await historyIn(owner, thread.id);
      const item = itemNamed(history, { id: thread.id, item_id });
      assertWaitsFor(thread, history.open.length);
      const ours = history.messages;
      const theirs = withoutItem(ours, item);
      assertOpen(item, theirs);
      const run = await replaceMessages(runs, owner, thread, { ours, theirs });
      if (run) await finished(owner, run);
      return conversationOf(thread);
    },
  );

  /** The next request may reach any replica and must see the change. */
  const finished = (owner: Owner, run: RunRecord) =>
    rewritten(runs, owner, run, AbortSignal.any([streams.closing, AbortSignal.timeout(WAIT_MS)]));

  /** Returns the data from which items are created, with the ids that the items had in the stream. */
  async function historyIn(owner: Owner, id: string): Promise<ConversationHistory> {
    const [messages, open, tools] = await Promise.all([
      threads.messages(owner, id),
      openOn(threads, owner, id),
      httpTools.list(owner.tenant),
    ]);
    const ofTenant = new Set(tools.map(({ name }) => name));
    const isServerTool = (name: string) =>
      agents.isReserved(name) || name.startsWith("mcp__") || ofTenant.has(name);
    return { messages, open, isServerTool };
  }
}

/** Throws `not_found`. */
function itemNamed(history: ConversationHistory, { id, item_id }: { id: string; item_id: string }): Item {
  const item = historyOf(history).find((each) => each.id === item_id);
  if (item) return item;
  throw new AppError("not_found", `Conversation \`${id}\` has no item \`${item_id}\`.`);
}

/** Only an answer may change a conversation that is waiting. Throws `thread_busy`. */
function assertWaitsFor({ id, status }: Thread, questions: number): void {
  if (status === "busy")
    throw new AppError(
      "thread_busy",
      `Conversation \`${id}\` has a response in progress. Try again when it has ended.`,
    );
  if (questions === 0) return;
  throw new AppError(
    "thread_busy",
    `Conversation \`${id}\` waits for ${questions} more ${questions === 1 ? "answer" : "answers"}. Send them with POST /v1/responses first.`,
  );
}

/**
 * The output of the newest call may be deleted. The output of an earlier call may not, because that call would then
 * have no output. Throws `invalid_request`.
 */
function assertOpen({ id, type, call_id }: Item, left: readonly Message[]): void {
  if (type !== "function_call_output" || unanswered(left).some((call) => call.id === call_id)) return;
  throw refused(
    "item_id",
    `the conversation has continued after \`${id}\`. Delete its call \`fc_${call_id}\` instead, together with the output.`,
  );
}

const wholeList = (data: readonly Item[]) => ({
  object: "list" as const,
  data: [...data],
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: false,
});
