// `skein config diff`: what another agents file would change.

import { type Change, changesBetween, type WrittenAgents } from "../agents/changes.ts";
import type { LoadedAgents } from "../agents/load.ts";
import { draftsOf } from "../agents/raw-agent.ts";
import { loadServerConfig } from "../config/load.ts";
import { AppError } from "../core/errors.ts";
import { readText } from "../lib/read-text.ts";
import { MAX_YAML_BYTES, readYaml } from "../lib/yaml/document.ts";
import type { Variables } from "../lib/yaml/variables.ts";
import { agentsIn, serverPlugins } from "./agents-file.ts";
import { visible } from "./paint.ts";

/** Prints the changes. Resolves with the exit code; throws `config_invalid` when the server would refuse one of the files. */
export async function configDiff(file: string, env: NodeJS.ProcessEnv): Promise<number> {
  const config = await loadServerConfig(env);
  const own = await serverPlugins(config);
  const before = await written(config.agents_file, env, await agentsIn(config.agents_file, env, own));
  const after = await written(file, env, await agentsIn(file, env, own));
  const changes = changesBetween(before, after);
  const lines = changes.length > 0 ? changes.flatMap(linesOf) : ["no changes"];
  process.stdout.write(`${lines.map(visible).join("\n")}\n`);
  return 0;
}

const MARKS = { added: "+", removed: "-", changed: "~" } as const;

const linesOf = ({ kind, what, fields }: Change) => [
  `${MARKS[kind]} ${what}`,
  ...fields.map((field) => `    ${field}`),
];

/** Each variable stands for its own name, so that no value of one is shown. */
const namesOf = (env: NodeJS.ProcessEnv): Variables =>
  Object.fromEntries(Object.keys(env).map((name) => [name, `\${${name}}`]));

async function written(
  file: string,
  env: NodeJS.ProcessEnv,
  { definitions }: LoadedAgents,
): Promise<WrittenAgents> {
  const read = await readText(file, MAX_YAML_BYTES);
  if ("fault" in read) throw new AppError("config_invalid", `\`${file}\` ${read.fault}`);
  const data = readYaml(file, read.text, namesOf(env)).data as { mcp_servers?: WrittenAgents["mcp_servers"] };
  // A prompt may be in files of its own, which can differ under the same names.
  const prompts = new Map(
    definitions.map(({ name, system }) => [name, system.map(({ text }) => text).join("\n")]),
  );
  const agents = draftsOf(data).map(({ name, fields: { system_prompt: _, context: __, ...fields } }) => {
    const prompt = prompts.get(name) ?? "";
    return [name, prompt ? { ...fields, prompt } : fields] as const;
  });
  return { agents: Object.fromEntries(agents), mcp_servers: data.mcp_servers ?? {} };
}
