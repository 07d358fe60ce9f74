// The wires: protocols of stock front ends, over the same threads as the native API. A wire is a fold of Skein's
// events. It stores nothing, and its routes use the same credentials, scopes, quotas and owners.

import { prefixOf, type WireName } from "../server/config/wire-names.ts";
import { readJsonBodies } from "../server/http/json-body.ts";
import type { AddWire } from "../server/http/server.ts";
import type { HttpLimits, RouteServices } from "../server/http/services.ts";
import type { App } from "../server/http/validation.ts";

interface Wire {
  routes(scope: App, services: RouteServices): void;
  /** Adds routes outside the wire's prefix. */
  otherRoutes?(app: App, services: RouteServices): void;
}

/** Each wire is loaded when it is first needed. */
const WIRES: Readonly<Record<WireName, () => Promise<Wire>>> = {
  "ag-ui": async () => ({ routes: (await import("./ag-ui/index.ts")).aguiRoutes }),
  "ai-sdk": async () => ({ routes: (await import("./ai-sdk/index.ts")).aiSdkRoutes }),
  openai: async () => ({ routes: (await import("./openai/index.ts")).openaiRoutes }),
  langgraph: async () => ({ routes: (await import("./langgraph/index.ts")).langgraphRoutes }),
  mcp: async () => ({ routes: (await import("./mcp/index.ts")).mcpRoutes }),
  a2a: async () => {
    const { a2aRoutes, a2aServerCard } = await import("./a2a/index.ts");
    return { routes: a2aRoutes, otherRoutes: a2aServerCard };
  },
};

/** Adds a wire to the server `app`. */
export const addWire: AddWire = async (app, services, name) => {
  const wire = await WIRES[name]();
  await app.register(
    async (scope) => {
      readJsonBodies(scope, { maxEntries: maxEntriesOf(services.limits), isEmptyTaken: true });
      wire.routes(scope as App, services);
    },
    { prefix: prefixOf(name) },
  );
  wire.otherRoutes?.(app, services);
};

/** Higher than usual, because many stock clients send the whole conversation with each request. */
const maxEntriesOf = ({ bodyEntries }: Pick<HttpLimits, "bodyEntries">) => 5 * bodyEntries;
