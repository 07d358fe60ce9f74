// Reloads the agents file while the server runs.

import type { FastifyBaseLogger } from "fastify";
import type { AgentRegistry } from "../../agent/agents/registry.ts";
import type { McpServerDefinitions } from "../../agent/tools/mcp/options.ts";
import type { McpServers } from "../../agent/tools/mcp/servers.ts";
import type { FileSchedules } from "../../engine/schedules/file-schedules.ts";
import type { Schedules } from "../../engine/schedules/index.ts";
import type { AllStores } from "../../engine/stores/all-stores.ts";
import type { ProcessBackends } from "../../sandbox/pool.ts";
import type { Reload } from "./metrics.ts";

export interface ReloadParts {
  readonly agents: AgentRegistry;
  readonly mcp: McpServers;
  readonly backends: ProcessBackends;
  readonly stores: AllStores;
  readonly schedules: Pick<Schedules, "writeFile">;
  readonly logger: FastifyBaseLogger;
  onReloaded(outcome: Reload): void;
}

/**
 * Reloads the agents. An invalid file changes nothing. Active runs keep the agent that they started with. Never throws.
 */
export async function reloadAgents(parts: ReloadParts): Promise<void> {
  const { agents, mcp, backends, stores, schedules, logger, onReloaded } = parts;
  try {
    if (!(await agents.reload())) return;
    for (const warning of agents.warnings()) logger.warn(warning);
    backends.begin(agents.list().flatMap(({ backend }) => backend ?? []));
    stores.bus.announce({ event: "config_changed", data: {} });
    onReloaded("ok");
    logger.info({ agents: agents.list().map(({ name }) => name) }, "the agents file was reloaded");
    // The catalogue's schema has already checked the servers.
    await mcp.replace(agents.mcpServers() as McpServerDefinitions);
    await schedules
      .writeFile(agents.schedules() as FileSchedules)
      .catch((err: unknown) => logger.error({ err }, "the schedules of the agents file were not stored"));
  } catch (err) {
    onReloaded("invalid");
    logger.error({ err }, "the agents file is invalid; the previous configuration stays in effect");
  }
}
