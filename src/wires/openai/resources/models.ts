// Agents as models.

import { z } from "zod";
import type { AgentInfo, AgentRegistry } from "../../../agent/agents/registry.ts";
import { AppError } from "../../../agent/core/errors.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import type { RouteServices } from "../../../server/http/services.ts";
import type { App } from "../../../server/http/validation.ts";

const Model = z.looseObject({ id: z.string(), object: z.literal("model") });

export function modelRoutes(app: App, { agents }: RouteServices): void {
  const tags = ["openai"];
  const began = Math.floor(Date.now() / 1000);

  app.get(
    "/models",
    {
      schema: {
        summary: "List the agents as models",
        tags,
        response: { 200: z.object({ object: z.literal("list"), data: z.array(Model) }) },
      },
    },
    async () => ({ object: "list" as const, data: agents.list().map((agent) => modelOf(agent, began)) }),
  );

  app.get(
    "/models/:model",
    {
      schema: {
        summary: "Get an agent as a model",
        tags,
        params: z.object({ model: z.string().max(256) }),
        response: { 200: Model },
      },
    },
    async (request) => modelOf(findAgent(agents, request.params.model), began),
  );
}

const modelOf = ({ name, description }: AgentInfo, created: number) => ({
  id: name,
  object: "model" as const,
  created,
  owned_by: "skein",
  name,
  ...omitUndefined({ description }),
});

/** Throws `not_found`, with the message and code that clients of this API expect. */
export function findAgent(agents: Pick<AgentRegistry, "list">, name: string): AgentInfo {
  const agent = agents.list().find((each) => each.name === name);
  if (agent) return agent;
  const names = agents.list().map((each) => `\`${each.name}\``);
  throw new AppError("not_found", `There is no model \`${name}\`. Use one of: ${names.join(", ")}.`, {
    details: { param: "model", code: "model_not_found" },
  });
}
