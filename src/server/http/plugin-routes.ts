// Plugin routes, below `/plugins/<name>/`. Each plugin has its own Fastify scope, so it cannot affect other routes.

import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import type { Owner } from "../../protocol/ids.ts";
import { principalOf } from "../auth/guard.ts";
import type { Principal } from "../auth/principal.ts";
import type { PluginAccess } from "../auth/scopes.ts";
import type { OwnRequests } from "./own-requests.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The access that a plugin's route requires. */
    readonly access?: PluginAccess;
  }
}

export interface PluginRouteOptions {
  /** Returns the sender of the request. Throws for a public route. */
  callerOf(request: FastifyRequest): Pick<Principal, "tenant" | "user" | "scopes">;
  /**
   * Returns a `fetch` that sends requests to this server as a user, with the scopes `read` and `run`. Pass it to
   * `createClient`. It needs neither a connection nor credentials, so first verify which user the plugin acts for.
   */
  fetchAs(owner: Owner): typeof fetch;
}

/**
 * A Fastify plugin. `GET` routes require the scope `read`, and all others require `run`. A route can set `config: {
 * access }` to another scope, to `any` (any credentials) or to `public`. Schemas are zod schemas.
 */
export type PluginRoutes = FastifyPluginAsync<PluginRouteOptions>;

export interface NamedRoutes {
  readonly name: string;
  readonly routes: PluginRoutes;
}

/** Call this after `guard`. Throws `config_invalid` if a plugin fails. */
export async function pluginRoutes(
  server: FastifyInstance,
  plugins: readonly NamedRoutes[],
  ownRequests: OwnRequests,
): Promise<void> {
  const callerOf = (request: FastifyRequest) => {
    const { tenant, user, scopes } = principalOf(request);
    return { tenant, user, scopes };
  };
  const options: PluginRouteOptions = { callerOf, fetchAs: (owner) => ownRequests.fetchAs(server, owner) };
  for (const { name, routes } of plugins) {
    const prefix = `/plugins/${name}`;
    // Adds an outer scope, because a plugin wrapped by `fastify-plugin` adds to the scope in which it is registered.
    try {
      await server.register(async (scope) => void (await scope.register(routes, options)), { prefix });
    } catch (cause) {
      throw new AppError("config_invalid", `plugin \`${name}\`: routes: ${messageOf(cause)}`, { cause });
    }
  }
}
