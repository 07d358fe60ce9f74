// `skein config check` lists the problems of the configuration. `skein config diff` lists the changes that another
// agents file would make. Both commands read the files in the same way as the server: they import plugins but call none
// of their functions.

import { type AgentsFileChange, changesBetween, type WrittenAgents } from "../../agent/agents/changes.ts";
import { type LoadedAgents, loadAgents } from "../../agent/agents/load.ts";
import { draftsOf } from "../../agent/agents/raw-agent.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Tool } from "../../agent/core/tool.ts";
import { SELDOM } from "../../lib/check.ts";
import { readText } from "../../lib/read-text.ts";
import { MAX_YAML_BYTES, readYaml } from "../../lib/yaml/document.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { authProblems } from "../../server/auth/config.ts";
import { checkConfig } from "../../server/config/check.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import type { ServerConfig } from "../../server/config/server.ts";
import { Web } from "../../server/config/web.ts";
import { createPluginLoader } from "../../server/plugins/load.ts";
import { builtInNames, catalogueOf, extending } from "../app/catalogue.ts";
import { ownTools } from "../app/own-tools.ts";
import { loadServerPlugins, type ServerPlugins } from "../app/server-plugins.ts";
import { visible } from "./paint.ts";
import { t } from "./texts.ts";

/** Prints every problem and warning. Returns the exit code, which is 1 if the server would not start. */
export async function configCheck(env: NodeJS.ProcessEnv): Promise<number> {
  let own: ServerExtensions | undefined;
  const { problems, warnings, summary } = await checkConfig(
    env,
    (file) => agentsIn(file, env, own),
    async (config) => {
      own = await serverPlugins(config);
      requireScheme(config, own);
    },
  );
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  for (const warning of warnings) process.stdout.write(`${t().config.warning(warning)}\n`);
  process.stdout.write(`${summary}\n`);
  return problems.length > 0 ? 1 : 0;
}

/** Prints the changes. Returns the exit code. Throws `config_invalid` if the server would refuse one of the files. */
export async function configDiff(file: string, env: NodeJS.ProcessEnv): Promise<number> {
  const config = await loadServerConfig(env);
  const own = await serverPlugins(config);
  const before = await written(config.agents_file, env, await agentsIn(config.agents_file, env, own));
  const after = await written(file, env, await agentsIn(file, env, own));
  const changes = changesBetween(before, after);
  const lines = changes.length > 0 ? changes.flatMap(linesOf) : [t().config.noChanges];
  process.stdout.write(`${lines.map(visible).join("\n")}\n`);
  return 0;
}

const MARKS = { added: "+", removed: "-", changed: "~" } as const;

const linesOf = ({ kind, what, fields }: AgentsFileChange) => [
  `${MARKS[kind]} ${what}`,
  ...fields.map((field) => `    ${field}`),
];

/** Replaces each variable's value with its name, so no value is printed. */
const namesOf = (env: NodeJS.ProcessEnv): Variables =>
  Object.fromEntries(Object.keys(env).map((name) => [name, `\${${name}}`]));

async function written(
  file: string,
  env: NodeJS.ProcessEnv,
  { definitions }: LoadedAgents,
): Promise<WrittenAgents> {
  const read = await readText(file, MAX_YAML_BYTES);
  if ("fault" in read) throw new AppError("config_invalid", `\`${file}\` ${read.fault}`);
  const data = readYaml(file, read.text, namesOf(env)).data as Partial<WrittenAgents>;
  // Prompts can be in separate files, whose content may differ even if their names are the same.
  const prompts = new Map(
    definitions.map(({ name, system }) => [name, system.map(({ text }) => text).join("\n")]),
  );
  const agents = draftsOf(data).map(({ name, fields: { system_prompt: _, context: __, ...fields } }) => {
    const prompt = prompts.get(name) ?? "";
    return [name, prompt ? { ...fields, prompt } : fields] as const;
  });
  return {
    agents: Object.fromEntries(agents),
    models: data.models ?? {},
    mcp_servers: data.mcp_servers ?? {},
  };
}

/** Throws `config_invalid` if a plugin cannot be loaded. */
async function serverPlugins(config: ServerConfig): Promise<ServerExtensions> {
  const tools = toolsOf(config);
  return {
    ...(await loadServerPlugins(createPluginLoader(), config.plugins, [], builtInNames({ tools }))),
    tools,
  };
}

interface ServerExtensions extends Pick<ServerPlugins, "plugins" | "names"> {
  /** The server's own tools. */
  readonly tools: readonly Tool[];
}

const toolsOf = (config: Pick<ServerConfig, "web">) => ownTools(config).tools;

function withoutPlugins(): ServerExtensions {
  const tools = toolsOf({ web: Web.parse({}, SELDOM) });
  return { plugins: [], names: builtInNames({ tools }), tools };
}

/** Throws `config_invalid` for an authentication scheme that neither Skein nor a plugin provides. */
function requireScheme({ listen, auth }: ServerConfig, { plugins }: Pick<ServerPlugins, "plugins">): void {
  const schemes = plugins.flatMap(({ plugin }) => plugin.auth?.name ?? []);
  const problems = authProblems(listen.host, auth, schemes);
  if (problems.length > 0) throw new AppError("config_invalid", problems.join("\n"));
}

/** Throws `config_invalid` with every problem of the agents file. */
function agentsIn(
  file: string,
  env: NodeJS.ProcessEnv,
  own: ServerExtensions = withoutPlugins(),
): Promise<LoadedAgents> {
  const parts = { env, plugins: own.plugins, tools: own.tools };
  const extend = extending(createPluginLoader(), parts, own.names);
  return loadAgents({ file, catalogue: catalogueOf(parts), extend, env });
}
