// The wires: protocols of stock front ends, spoken over the same threads as the native API. A wire is a fold of our events:
// nothing of it is stored, and every route takes the same credentials, scopes, quotas and owners.

import { readJsonBodies } from "../json-body.ts";
import type { HttpLimits, RouteServices } from "../services.ts";
import type { App } from "../validation.ts";
import { a2aRoutes, a2aServerCard } from "./a2a/index.ts";
import { aguiRoutes } from "./ag-ui/index.ts";
import { aiSdkRoutes } from "./ai-sdk/index.ts";
import { langgraphRoutes } from "./langgraph/index.ts";
import { mcpRoutes } from "./mcp/index.ts";
import { prefixOf, type WireName } from "./names.ts";
import { openaiRoutes } from "./openai/index.ts";

const ROUTES: Readonly<Record<WireName, (scope: App, services: RouteServices) => void>> = {
  "ag-ui": aguiRoutes,
  "ai-sdk": aiSdkRoutes,
  openai: openaiRoutes,
  langgraph: langgraphRoutes,
  mcp: mcpRoutes,
  a2a: a2aRoutes,
};

/** Adds the routes of these wires, each with the error shape and the body rules of its own. */
export async function wireRoutes(
  app: App,
  services: RouteServices,
  names: readonly WireName[],
): Promise<void> {
  for (const name of names) {
    await app.register(
      async (scope) => {
        readJsonBodies(scope, { maxEntries: maxEntriesOf(services.limits), isEmptyTaken: true });
        ROUTES[name](scope as App, services);
      },
      { prefix: prefixOf(name) },
    );
    if (name === "a2a") a2aServerCard(app, services);
  }
}

/** Many stock clients send the whole conversation with each request. */
const maxEntriesOf = ({ bodyEntries }: Pick<HttpLimits, "bodyEntries">) => 5 * bodyEntries;
