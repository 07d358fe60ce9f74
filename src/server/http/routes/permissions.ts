// Remembered permission rules: list, add and delete a thread's rules and the user's own.

import { z } from "zod";
import { AppError } from "../../../agent/core/errors.ts";
import type { Shelf } from "../../../agent/core/items.ts";
import {
  RememberedRule,
  ruleKey,
  rulesIn,
  SESSION_RULES,
  sessionRulesShelf,
  shownRules,
  userRulesShelf,
} from "../../../agent/hooks/permissions/stored-rules.ts";
import { notFound } from "../../../engine/runs/control.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../auth/guard.ts";
import { pageSender } from "../long-responses.ts";
import { ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const AgentParams = z.object({ name: z.string().max(64) });
const RuleId = z.string().max(100);
const Rules = z.object({ items: z.array(RememberedRule) });

export function permissionRoutes(app: App, services: RouteServices): void {
  const {
    stores: { threads, items },
    agents,
    permissionRule,
    unreadResponses,
  } = services;
  const sendRules = pageSender(unreadResponses, (rule: RememberedRule) => JSON.stringify(rule));
  const tags = ["permissions"];

  app.get(
    "/threads/:thread_id/permissions",
    {
      schema: {
        summary: "List the permission rules of a thread",
        tags,
        params: ThreadParams,
        response: { 200: Rules },
      },
    },
    async (request, reply) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      const shelf = await shelfOfThread(owner, thread_id);
      const state = await threads.state(owner, thread_id);
      return sendRules(reply, { items: [...shownRules(state[SESSION_RULES]), ...(await rulesOn(shelf))] });
    },
  );

  app.post(
    "/threads/:thread_id/permissions",
    {
      schema: {
        summary: "Add or replace a permission rule of a thread",
        tags,
        params: ThreadParams,
        body: permissionRule,
        response: { 201: RememberedRule },
      },
    },
    async (request, reply) => {
      const shelf = await shelfOfThread(ownerOf(request), request.params.thread_id);
      return reply.code(201).send(await keep(shelf, request.body));
    },
  );

  app.delete(
    "/threads/:thread_id/permissions",
    {
      schema: {
        summary: "Delete all rules of a thread",
        tags,
        params: ThreadParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      const found = await threads.update(owner, thread_id, { forget: [SESSION_RULES] });
      if (!found) throw notFound("thread", thread_id);
      const shelf = sessionRulesShelf(owner, thread_id);
      for (const { id } of await rulesOn(shelf)) await items.delete(shelf, ruleKey(id));
      return reply.code(204).send(null);
    },
  );

  app.delete(
    "/threads/:thread_id/permissions/:id",
    {
      schema: {
        summary: "Delete a rule of a thread",
        tags,
        params: ThreadParams.extend({ id: RuleId }),
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id, id } = request.params;
      await forget(await shelfOfThread(ownerOf(request), thread_id), id);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/agents/:name/permissions",
    {
      schema: {
        summary: "List your rules for an agent",
        tags,
        params: AgentParams,
        response: { 200: Rules },
      },
    },
    async (request, reply) =>
      sendRules(reply, { items: await rulesOn(shelfOfAgent(ownerOf(request), request.params.name)) }),
  );

  app.post(
    "/agents/:name/permissions",
    {
      schema: {
        summary: "Add or replace one of your rules for an agent",
        tags,
        params: AgentParams,
        body: permissionRule,
        response: { 201: RememberedRule },
      },
    },
    async (request, reply) => {
      const shelf = shelfOfAgent(ownerOf(request), request.params.name);
      return reply.code(201).send(await keep(shelf, request.body));
    },
  );

  app.delete(
    "/agents/:name/permissions/:id",
    {
      schema: {
        summary: "Delete one of your own rules",
        tags,
        params: AgentParams.extend({ id: RuleId }),
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { name, id } = request.params;
      await forget(shelfOfAgent(ownerOf(request), name), id);
      return reply.code(204).send(null);
    },
  );

  const rulesOn = async (shelf: Shelf) => shownRules(rulesIn(await items.list(shelf)));

  /** Throws `limit_exceeded` if there are too many rules. */
  async function keep(shelf: Shelf, rule: { readonly id: string }): Promise<RememberedRule> {
    await items.put(shelf, { key: ruleKey(rule.id), value: rule });
    return RememberedRule.parse(rule);
  }

  /** Throws `not_found`. */
  async function forget(shelf: Shelf, id: string): Promise<void> {
    if (await items.delete(shelf, ruleKey(id))) return;
    throw new AppError("not_found", `There is no rule \`${id}\`.`);
  }

  /** Throws `not_found`. */
  async function shelfOfThread(owner: Owner, thread: string): Promise<Shelf> {
    if (!(await threads.get(owner, thread))) throw notFound("thread", thread);
    return sessionRulesShelf(owner, thread);
  }

  /** Throws `not_found`. */
  function shelfOfAgent(owner: Owner, name: string): Shelf {
    if (!agents.list().some((agent) => agent.name === name))
      throw new AppError("not_found", `There is no agent \`${name}\`.`);
    return userRulesShelf(owner, name);
  }
}
