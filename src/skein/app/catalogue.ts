// The components available to this server's agents: Skein's own, and those from the plugins of the server and of an
// agents file.

import type { Catalogue, Extend } from "../../agent/agents/catalogue.ts";
import type { ModelSpec } from "../../agent/core/agent.ts";
import type { HookDefinition } from "../../agent/core/hook.ts";
import type { Model } from "../../agent/core/model.ts";
import { withinDomains } from "../../agent/core/own-search.ts";
import { pluginRefs } from "../../agent/core/plugin-ref.ts";
import type { Tool } from "../../agent/core/tool.ts";
import { hooks } from "../../agent/hooks/index.ts";
import { createModel, modelDoubt, providerNames } from "../../agent/models/index.ts";
import { McpServerDefinitions } from "../../agent/tools/mcp/options.ts";
import type { McpServers } from "../../agent/tools/mcp/servers.ts";
import { nativeTools } from "../../agent/tools/native.ts";
import { FileSchedules } from "../../engine/schedules/file-schedules.ts";
import { withOwnBackends } from "../../sandbox/index.ts";
import type { LoadedPlugin, PluginLoader } from "../../server/plugins/load.ts";
import { collisions, hooksOf, type Names } from "../../server/plugins/names.ts";

export interface CatalogueOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Replaces the model providers, for example in tests. */
  readonly createModel?: ((spec: ModelSpec) => Model) | undefined;
  readonly tools?: readonly Tool[] | undefined;
  /** Hooks that surround the built-in ones. */
  readonly hooks?: readonly HookDefinition[] | undefined;
  /** The server's plugins, whose names are unique and whose hooks are placed. */
  readonly plugins?: readonly LoadedPlugin[] | undefined;
  readonly mcp?: (() => Pick<McpServers, "tools" | "absent" | "listed" | "ofOwners"> | undefined) | undefined;
}

export function catalogueOf(options: CatalogueOptions): Catalogue {
  const {
    env,
    createModel: create,
    tools = [],
    hooks: own = [],
    plugins = [],
    mcp = () => undefined,
  } = options;
  const parts = plugins.map(({ plugin }) => plugin);
  const providers = new Map(parts.flatMap(({ models = {} }) => Object.entries(models)));
  const ofPlugins = parts.flatMap((plugin) => plugin.tools ?? []);
  return {
    hooks: [...own, ...hooksOf(plugins, hooks).hooks],
    tools: () => [...nativeTools, ...tools, ...ofPlugins, ...(mcp()?.tools() ?? [])],
    serverTools: () => mcp()?.tools() ?? [],
    serversListed: async (names) => mcp()?.listed(names),
    absentServers: () => mcp()?.absent() ?? [],
    accountServers: () => mcp()?.ofOwners() ?? [],
    mcpServers: McpServerDefinitions,
    schedules: FileSchedules,
    backends: withOwnBackends(Object.assign({}, ...parts.map(({ backends }) => backends))).options,
    createModel: (spec) =>
      withinDomains(create?.(spec) ?? createModel(spec, env, providers), [...tools, ...ofPlugins]),
    modelDoubt: (spec) => modelDoubt(spec, env),
  };
}

/** Returns the names that no plugin may use, each with its owner. */
export function builtInNames({
  tools = [],
  hooks: own = [],
}: Pick<CatalogueOptions, "tools" | "hooks"> = {}): Names {
  const all = [...own, ...hooks];
  const toolNames = [
    ...[...nativeTools, ...tools].map(({ name }) => name),
    ...all.flatMap((hook) => [...(hook.tools ?? []), ...(hook.fixedTools ?? [])]),
  ];
  return new Map([
    ...toolNames.map((name) => [`tool \`${name}\``, "Skein"] as const),
    ...all.map(({ name }) => [`hook \`${name}\``, "Skein"] as const),
    ...providerNames().map((name) => [`model provider \`${name}\``, "Skein"] as const),
    ...["local", "docker"].map((name) => [`backend type \`${name}\``, "Skein"] as const),
    ...["none", "api_key", "jwt", "header"].map(
      (name) => [`authentication scheme \`${name}\``, "Skein"] as const,
    ),
  ]);
}

/** The parts of a plugin that a running server cannot replace. */
const FIXED_PARTS = ["backends", "auth", "recorder", "tasks", "vaultKey", "routes"] as const;

/** Adds the plugins of an agents file to the server's parts. `taken` contains the names that already exist. */
export function extending(loader: PluginLoader, options: CatalogueOptions, taken: Names): Extend {
  const bare = catalogueOf(options);
  let last = { plugins: [] as readonly LoadedPlugin[], catalogue: bare };

  return async (modules, file) => {
    const { plugins, faults, files } = await loader.load(pluginRefs(modules, file));
    const all = [...(options.plugins ?? []), ...plugins];
    const wrong = [
      ...faults,
      ...collisions(plugins, taken).faults,
      ...hooksOf(all, hooks).faults,
      ...fixedParts(plugins),
    ];
    const isSame =
      plugins.length === last.plugins.length &&
      plugins.every(({ plugin }, index) => plugin === last.plugins[index]?.plugin);
    if (wrong.length === 0 && !isSame) {
      const catalogue = plugins.length === 0 ? bare : catalogueOf({ ...options, plugins: all });
      last = { plugins, catalogue };
    }
    return { catalogue: last.catalogue, faults: wrong, files };
  };
}

const fixedParts = (plugins: readonly LoadedPlugin[]) =>
  plugins.flatMap(({ plugin, index }) =>
    FIXED_PARTS.filter((part) => plugin[part] !== undefined).map((part) => ({
      index,
      message: `plugin \`${plugin.name}\` has \`${part}\`, which need a restart to change. Name the plugin under \`plugins\` in server.yaml`,
    })),
  );
