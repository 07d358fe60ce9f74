// The agents that are configured, as this user sees them.

import { z } from "zod";
import { AgentInfo } from "../../agents/registry.ts";
import { AppError } from "../../core/errors.ts";
import type { HttpServices } from "../services.ts";
import type { App } from "../validation.ts";

export function agentRoutes(app: App, { agents }: HttpServices): void {
  const tags = ["agents"];

  app.get(
    "/agents",
    { schema: { summary: "All agents", tags, response: { 200: z.object({ items: z.array(AgentInfo) }) } } },
    async () => ({ items: [...agents.list()] }),
  );

  app.get(
    "/agents/:name",
    {
      schema: {
        summary: "An agent",
        tags,
        params: z.object({ name: z.string().max(64) }),
        response: { 200: AgentInfo },
      },
    },
    async ({ params }) => {
      const agent = agents.list().find(({ name }) => name === params.name);
      if (!agent) throw new AppError("not_found", `There is no agent \`${params.name}\`.`);
      return agent;
    },
  );
}
