// The SDKs and schemas that runs need and the start does not.

import type { AgentRegistry } from "../../agent/agents/registry.ts";
import { loadSdks } from "../../agent/models/index.ts";
import type { Logger } from "../../lib/logger.ts";
import { warmUpSchemaEngine } from "../../lib/untrusted-schema/index.ts";
import type { Metrics } from "../../server/telemetry/metrics.ts";

/** Time after the start, in ms, at which SDKs and schemas are loaded. */
const WARM_UP_MS = 500;

interface WarmUpParts {
  readonly agents: Pick<AgentRegistry, "list">;
  readonly metrics: Pick<Metrics, "begin"> | undefined;
}

/**
 * Loads the SDKs and schemas that runs need shortly after the start, so that they delay neither the start nor the first
 * request.
 */
export function warmingUp({ metrics, agents }: WarmUpParts, logger: Logger) {
  let timer: NodeJS.Timeout | undefined;
  // A request that needs one of them earlier loads it itself.
  const load = async () => {
    metrics?.begin();
    await loadSdks(agents.list().map(({ model }) => model));
    await warmUpSchemaEngine();
  };
  return {
    begin() {
      timer = setTimeout(() => {
        load().catch((err: unknown) =>
          logger.warn({ err }, "SDKs and schemas of runs could not be loaded in advance"),
        );
      }, WARM_UP_MS).unref();
    },
    stop: () => clearTimeout(timer),
  };
}
