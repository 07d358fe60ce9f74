// An agents file as the server would read it, with the plugins of server.yaml. Plugins are imported; nothing of them is called.

import { type LoadedAgents, loadAgents } from "../agents/load.ts";
import { builtInNames, catalogueOf, extending } from "../app/catalogue.ts";
import { loadServerPlugins, type ServerPlugins } from "../app/server-plugins.ts";
import type { ServerConfig } from "../config/server.ts";
import { AppError } from "../core/errors.ts";
import { authProblems } from "../http/auth/config.ts";
import { createPluginLoader } from "../plugins/load.ts";

/** Throws `config_invalid` for plugins that cannot be loaded. */
export const serverPlugins = ({ plugins }: ServerConfig): Promise<ServerPlugins> =>
  loadServerPlugins(createPluginLoader(), plugins, [], builtInNames());

/** Throws `config_invalid` for a scheme that neither Skein nor one of the plugins has. */
export function requireScheme({ listen, auth }: ServerConfig, { plugins }: ServerPlugins): void {
  const schemes = plugins.flatMap(({ plugin }) => plugin.auth?.name ?? []);
  const problems = authProblems(listen.host, auth, schemes);
  if (problems.length > 0) throw new AppError("config_invalid", problems.join("\n"));
}

/** Throws `config_invalid` with every problem of the agents file. */
export function agentsIn(
  file: string,
  env: NodeJS.ProcessEnv,
  own: Pick<ServerPlugins, "plugins" | "names"> = { plugins: [], names: builtInNames() },
): Promise<LoadedAgents> {
  const parts = { env, plugins: own.plugins };
  const extend = extending(createPluginLoader(), parts, own.names);
  return loadAgents({ file, catalogue: catalogueOf(parts), extend, env });
}
