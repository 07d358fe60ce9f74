// What people have answered once and for all: shown, and forgotten.

import { z } from "zod";
import { AppError } from "../../core/errors.ts";
import type { Owner } from "../../core/ids.ts";
import {
  RememberedRule,
  SESSION_RULES,
  shownRules,
  userRuleKey,
  userRulesIn,
  userRulesShelf,
} from "../../core/permission-rules.ts";
import { notFound } from "../../runs/manager.ts";
import { ownerOf } from "../auth/guard.ts";
import { ThreadParams } from "../schemas.ts";
import type { RouteServices } from "../services.ts";
import type { App } from "../validation.ts";

const AgentParams = z.object({ name: z.string().max(64) });
const RuleParams = AgentParams.extend({ id: z.string().max(100) });
const Rules = z.object({ items: z.array(RememberedRule) });

export function permissionRoutes(app: App, { stores: { threads, items }, agents }: RouteServices): void {
  const tags = ["permissions"];

  app.get(
    "/threads/:thread_id/permissions",
    {
      schema: {
        summary: "What was answered once and for all on a thread",
        tags,
        params: ThreadParams,
        response: { 200: Rules },
      },
    },
    async (request) => {
      const { thread_id } = request.params;
      const owner = ownerOf(request);
      if (!(await threads.get(owner, thread_id))) throw notFound("thread", thread_id);
      return { items: shownRules((await threads.state(owner, thread_id))[SESSION_RULES]) };
    },
  );

  app.delete(
    "/threads/:thread_id/permissions",
    {
      schema: {
        summary: "Forget what was answered once and for all on a thread",
        tags,
        params: ThreadParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { thread_id } = request.params;
      const found = await threads.update(ownerOf(request), thread_id, { forget: [SESSION_RULES] });
      if (!found) throw notFound("thread", thread_id);
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/agents/:name/permissions",
    {
      schema: {
        summary: "What you have answered once and for all, wherever the agent works for you",
        tags,
        params: AgentParams,
        response: { 200: Rules },
      },
    },
    async (request) => {
      const shelf = shelfOf(ownerOf(request), request.params.name);
      return { items: shownRules(userRulesIn(await items.list(shelf))) };
    },
  );

  app.delete(
    "/agents/:name/permissions/:id",
    {
      schema: {
        summary: "Forget one of these answers",
        tags,
        params: RuleParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { name, id } = request.params;
      if (!(await items.delete(shelfOf(ownerOf(request), name), userRuleKey(id))))
        throw new AppError("not_found", `There is no rule \`${id}\`.`);
      return reply.code(204).send(null);
    },
  );

  /** Throws `not_found`. */
  function shelfOf(owner: Owner, name: string) {
    if (!agents.list().some((agent) => agent.name === name))
      throw new AppError("not_found", `There is no agent \`${name}\`.`);
    return userRulesShelf(owner, name);
  }
}
