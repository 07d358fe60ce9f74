// Agents as the user sees them, with the user's overrides applied. Admins and operators also see their prompts.

import { z } from "zod";
import {
  changeOverrides,
  forgetOverrides,
  keptOverrides,
  OverrideIssue,
  Overrides,
  OverridesPatch,
  told,
} from "../../../agent/agents/overrides.ts";
import { AgentInfo, UserChoices } from "../../../agent/agents/registry.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { UserMay } from "../../../agent/core/hook.ts";
import { offeredTools } from "../../../engine/runs/offered-tools.ts";
import { mergePatch } from "../../../lib/json.ts";
import type { Owner } from "../../../protocol/ids.ts";
import { ownerOf } from "../../auth/guard.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

const OwnChanges = Overrides.extend({
  ignored: z
    .array(OverrideIssue)
    .describe(
      "Overrides that the agent no longer accepts, each with the values that the agent would accept.",
    ),
  changeable: z
    .record(z.string(), UserMay)
    .describe("Hooks that you can change: turn off, turn on and off, or configure with options."),
}).meta({ id: "AgentOverrides" });

const AgentDetails = AgentInfo.extend({
  choices: UserChoices.describe("Settings that you can change with your overrides."),
}).meta({ id: "AgentDetails" });

const AgentTool = z
  .object({
    name: z.string(),
    description: z.string().describe("Description for the model."),
    parameters: z.record(z.string(), z.unknown()).describe("JSON Schema of the tool's arguments."),
    read_only: z.boolean().describe("True if the tool changes nothing."),
  })
  .meta({ id: "AgentTool" });

const PromptBlock = z.object({ id: z.string(), text: z.string() }).meta({ id: "PromptBlock" });

export function agentRoutes(app: App, { agents, runs, stores: { items } }: HttpServices): void {
  const tags = ["agents"];
  const params = z.object({ name: z.string().max(64) });
  const seen = async (owner: Owner, name: string) => {
    // Throws for an unknown agent before the store is read.
    agents.seenWith(name, undefined);
    const user = await keptOverrides(items, owner, name);
    return { ...agents.seenWith(name, user), user };
  };

  const shown = async (owner: Owner, name: string) => {
    const { agent, user } = await seen(owner, name);
    const tools = await offeredTools(runs, owner, name);
    return { ...agent, user, tools: tools.map((tool) => tool.name) };
  };

  const changesOf = (user: unknown, ignored: readonly OverrideIssue[]) => ({
    ...Overrides.safeParse(user).data,
    ignored: [...ignored],
    changeable: agents.changeable(),
  });

  app.get(
    "/agents",
    {
      schema: {
        summary: "List all agents",
        tags,
        response: { 200: z.object({ items: z.array(AgentInfo) }) },
      },
    },
    async (request) => {
      const all = agents.list().map(({ name }) => shown(ownerOf(request), name));
      return { items: await Promise.all(all) };
    },
  );

  app.get(
    "/agents/:name",
    {
      schema: {
        summary: "Get an agent and the settings that you can change",
        tags,
        params,
        response: { 200: AgentDetails },
      },
    },
    async (request) => {
      const { name } = request.params;
      const { user, ...agent } = await shown(ownerOf(request), name);
      return { ...agent, choices: agents.choices(name, user) };
    },
  );

  app.get(
    "/agents/:name/tools",
    {
      schema: {
        summary: "List the tools that an agent's model gets in your runs, by name",
        tags,
        params,
        response: { 200: z.object({ items: z.array(AgentTool) }) },
      },
    },
    async (request) => {
      const { name } = request.params;
      agents.seenWith(name, undefined);
      const tools = await offeredTools(runs, ownerOf(request), name);
      const items = tools.map(({ name, description, parameters, annotations }) => ({
        ...{ name, description, parameters: { ...parameters } },
        read_only: annotations.readOnly === true,
      }));
      return { items };
    },
  );

  app.get(
    "/agents/:name/prompt",
    {
      schema: {
        summary: "Get the configured system prompt of an agent",
        description:
          "Requires the scope `admin` or `operator`. Returns the blocks in the order in which every run sends them. Hooks such as skills and memory add more blocks during a run: `GET /threads/{thread_id}/runs/{run_id}/requests/{n}` returns those as well.",
        tags,
        params,
        response: { 200: z.object({ items: z.array(PromptBlock) }) },
      },
    },
    async (request) => {
      const { name } = request.params;
      agents.seenWith(name, undefined);
      return { items: agents.find(name).system.map(({ id, text }) => ({ id, text })) };
    },
  );

  app.get(
    "/agents/:name/overrides",
    { schema: { summary: "Get your overrides for an agent", tags, params, response: { 200: OwnChanges } } },
    async (request) => {
      const { user, ignored } = await seen(ownerOf(request), request.params.name);
      return changesOf(user, ignored);
    },
  );

  app.patch(
    "/agents/:name/overrides",
    {
      schema: {
        summary: "Change your overrides for an agent: hooks, skills, model",
        description:
          "Takes effect with the next run. You cannot change hooks that protect the operator or other users. `changeable` in the response lists the hooks that you can change.",
        tags,
        params,
        body: OverridesPatch,
        response: { 200: OwnChanges },
      },
    },
    async (request) => {
      const { name } = request.params;
      agents.seenWith(name, undefined);
      const place = { owner: ownerOf(request), agent: name };
      const changed = await changeOverrides(items, place, (before) => {
        const after = mergePatch(before, request.body);
        refuseNew(agents.seenWith(name, after).ignored, agents.seenWith(name, before).ignored);
        return after;
      });
      return changesOf(changed, agents.seenWith(name, changed).ignored);
    },
  );

  app.delete(
    "/agents/:name/overrides",
    {
      schema: {
        summary: "Remove all your overrides for an agent",
        tags,
        params,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      const { name } = request.params;
      agents.seenWith(name, undefined);
      await forgetOverrides(items, ownerOf(request), name);
      return reply.code(204).send(null);
    },
  );
}

/** Refuses only new issues, because issues that existed before must not block another change. */
function refuseNew(misfits: readonly OverrideIssue[], before: readonly OverrideIssue[]): void {
  const known = new Set(before.map(({ path }) => path));
  const issues = misfits.filter(({ path }) => !known.has(path));
  if (issues.length > 0)
    throw new AppError("invalid_request", `These overrides do not fit the agent: ${told(issues)}`, {
      details: { issues },
    });
}
