// The wires: protocols of stock front ends, spoken over the same threads as the native API. A wire is a fold of our events:
// nothing of it is stored, and every route takes the same credentials, scopes, quotas and owners.

import type { RouteServices } from "../services.ts";
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
        takeEmptyBodies(scope as App);
        ROUTES[name](scope as App, services);
      },
      { prefix: prefixOf(name) },
    );
    if (name === "a2a") a2aServerCard(app, services);
  }
}

/** Stock clients send `Content-Type: application/json` with an empty body, for example to cancel. */
function takeEmptyBodies(scope: App): void {
  const parse = scope.getDefaultJsonParser("error", "error");
  scope.removeContentTypeParser("application/json");
  scope.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else void parse(request, body as string, done);
  });
}
