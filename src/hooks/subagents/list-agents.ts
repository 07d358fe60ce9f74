// Who there is to give tasks to.

import { z } from "zod";
import { defineTool, type Tool } from "../../core/tool.ts";
import { available, lineOf, type Team } from "./team.ts";

export function listAgents(team: Team): Tool {
  return defineTool({
    name: "list_agents",
    description: "Lists the agents that you may give tasks to.",
    parameters: z.strictObject({}),
    annotations: { readOnly: true, category: "plan", requiresPermission: false },
    execute: async () => available(team).map(lineOf).join("\n") || "There are none.",
  });
}
