// Routes of plugins, each plugin's below `/plugins/<name>/` in a scope of its own: what one adds there reaches no other route.

import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from "fastify";
import { AppError, messageOf } from "../../agent/core/errors.ts";
import { principalOf } from "../auth/guard.ts";
import type { Principal } from "../auth/principal.ts";
import type { PluginAccess } from "../auth/scopes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a plugin's route takes. */
    readonly access?: PluginAccess;
  }
}

export interface PluginRouteOptions {
  /** Who sends the request. Throws for a public route. */
  callerOf(request: FastifyRequest): Pick<Principal, "tenant" | "user" | "scopes">;
}

/**
 * A Fastify plugin. `GET` routes need the scope `read`, all others `run`, unless the route's `config: { access }` says
 * otherwise: a scope, `any` for any credentials, or `public`. Schemas are zod schemas.
 */
export type PluginRoutes = FastifyPluginAsync<PluginRouteOptions>;

export interface NamedRoutes {
  readonly name: string;
  readonly routes: PluginRoutes;
}

/** Call it after `guard`. Throws `config_invalid` for a plugin that fails. */
export async function pluginRoutes(server: FastifyInstance, plugins: readonly NamedRoutes[]): Promise<void> {
  const callerOf = (request: FastifyRequest) => {
    const { tenant, user, scopes } = principalOf(request);
    return { tenant, user, scopes };
  };
  for (const { name, routes } of plugins) {
    const prefix = `/plugins/${name}`;
    // A scope around the plugin's own: one wrapped by `fastify-plugin` would add to the scope that it is registered in.
    try {
      await server.register(async (scope) => void (await scope.register(routes, { callerOf })), { prefix });
    } catch (cause) {
      throw new AppError("config_invalid", `plugin \`${name}\`: routes: ${messageOf(cause)}`, { cause });
    }
  }
}
